"""An optimal control problem: a crane moves a load as fast as it can without letting it swing.

Change the model, the costs and the limits; the rest may stay.
"""

import casadi as ca

from casadi_hybrid.control import Collocation, Free, Model, OptimalControl

# 1. The model: what moves, between which limits, in which units (scale: its usual size).
crane = Model("crane")
position = crane.state("position", unit="m", scale=5.0)
speed = crane.state("speed", lower=-2.0, upper=2.0, unit="m/s")
angle = crane.state("angle", lower=-0.3, upper=0.3, scale=0.2, unit="rad")
swing = crane.state("swing", scale=0.2, unit="rad/s")
force = crane.control("acceleration", lower=-1.5, upper=1.5, unit="m/s²")
rope = crane.parameter("rope", 3.0, unit="m")  # may change without building anything anew
crane.rates(
    position=speed,
    speed=force,
    angle=swing,
    swing=-(9.81 * ca.sin(angle) + force * ca.cos(angle)) / rope,
)

# 2. The problem: from where to where, at what cost, within which limits.
duration = Free(6.0, lower=1.0, upper=30.0)
ocp = OptimalControl(crane, duration=duration, intervals=40, method=Collocation(degree=3))
ocp.initial(position=0, speed=0, angle=0, swing=0)
ocp.final(position=5, speed=0, angle=0, swing=0)
ocp.minimize("time", end=ocp.duration)
ocp.minimize("comfort", integral=0.01 * force**2)
ocp.path("load ahead", position + rope * ca.sin(angle), upper=5.2)

if __name__ == "__main__":
    # 3. Solve it, read it by name, and draw it with its limits.
    solution = ocp.solve()
    print(solution)  # with the cause of a failure, and limits exceeded between the grid points
    print(f"largest angle: {abs(solution['angle']).max():.3f} rad")
    print(f"multipliers of 'load ahead': {solution.multipliers['load ahead'].max():.3g} at most")
    solution.plot(path="solution.png")

    # 4. Another rope, warm from the answer: nothing is built anew.
    again = ocp.solve(guess=solution, rope=4.0)
    print(f"with a rope of 4 m: {again.duration:.3f} s, {again.iterations} iterations")

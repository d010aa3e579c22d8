"""Predictive control in closed loop: a tank with a pump, limits, a disturbance and noise.

Change the model, the costs and the limits; the rest may stay.
"""

import casadi as ca

from casadi_hybrid.control import EKF, MPC, Model, OptimalControl, Plant, simulate

# 1. The model the controller believes in: what moves, between which limits, in which units.
tank = Model("tank")
level = tank.state("level", lower=0.0, upper=1.2, guess=0.5, unit="m")
pump = tank.state("pump", lower=0.0, upper=1.0, guess=0.3)
change = tank.control("change", lower=-0.2, upper=0.2, unit="1/s")
outlet = tank.parameter("outlet", 0.12)
tank.rates(level=0.2 * pump - outlet * ca.sqrt(level + 0.01), pump=change)

# 2. The problem it solves at every step; the target may change without building anything anew.
ocp = OptimalControl(tank, duration=20.0, intervals=20)
target = ocp.parameter("target", 1.0, unit="m")
ocp.initial()
ocp.minimize("error", integral=(level - target) ** 2)
ocp.minimize("effort", integral=0.05 * change**2)

# 3. The controller: warm starts, and an answer in every case (step.status says which).
mpc = MPC(ocp, soften=1e3)

if __name__ == "__main__":
    # 4. The plant it meets: another outlet, a sensor of the level alone with noise and lost
    #    measurements, a splash after 30 s. The filter estimates the state in every case.
    plant = Plant(tank, period=1.0, parameters={"outlet": 0.13}, outputs=["level"])
    process = {"level": 0.01, "pump": 0.0}  # standard deviations: the pump is known exactly
    ekf = EKF(tank, 1.0, outputs=["level"], noise=0.005, prior=process, process=process)
    run = simulate(
        plant,
        mpc,
        ekf,
        steps=80,
        x0={"level": 0.3, "pump": 0.3},
        noise=0.005,
        dropout=0.05,
        push={30: [0.1, 0.0]},
        parameters=lambda time: {"target": 1.0 if time < 50 else 0.6},
    )

    # 5. Look at it: status of all steps, ranges, the largest violation of a limit; a figure, fit to
    #    publish as run.plot(path="run.pdf").
    print(run)
    run.plot(path="run.png")

"""The optimal-control problems of the benchmarks, from cold starts."""

from __future__ import annotations

from problems.chains import chain_disc, chain_ground
from problems.control_base import SIZES, Family
from problems.control_dae import cart_pendulum, cart_swing, distillation, pendulum
from problems.control_pde import elliptic
from problems.control_shooting import scenarios, van_der_pol
from problems.control_singular import catalyst, goddard
from problems.control_time import cart_pole, race_car, robot_arm

__all__ = ["FAMILIES", "SIZES", "Family"]

LINKS = (5, 10, 15, 20), (30, 40, 50, 60, 70), (80, 100, 120, 160)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("goddard", goddard, (50,), (100,), (200,), (30, 70, 85, 130, 160)),
        Family("catalyst", catalyst, (50,), (100,), (200,), (30, 70, 85, 130, 160)),
        Family("robot_arm", robot_arm, (25,), (50,), (100,), (15, 20, 35, 70, 85)),
        Family("cart_pole", cart_pole, (30,), (60,), (120,), (20, 40, 50, 80, 100)),
        Family("pendulum", pendulum, (20,), (40,), (80,), (15, 25, 30, 50, 65)),
        Family(
            "cart_pendulum", cart_pendulum, (10, 12, 14, 16), (18, 20, 22, 25, 28), (32, 36, 40, 50)
        ),
        Family("cart_swing", cart_swing, (9, 11, 13), (17, 19, 23, 26), (31, 34, 37, 41)),
        Family("chain_ground", chain_ground, *LINKS),
        Family("chain_disc", chain_disc, *LINKS),
        Family("distillation", distillation, (4,), (8,), (16,), (3, 5, 6, 10, 12)),
        Family("scenarios", scenarios, (8,), (16,), (32,), (4, 6, 12, 20, 24)),
        Family("van_der_pol", van_der_pol, (50,), (100,), (200,), (25, 35, 70, 85, 120)),
        Family("elliptic", elliptic, (28,), (44,), (63,), (16, 20, 24, 32, 36)),
        Family("race_car", race_car, (25, 50), (100,), (200,), (35, 70, 85, 140)),
    )
}

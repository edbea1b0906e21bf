from tests.explore.conftest import study, toy_system, whole

__all__ = ["study", "toy_system", "whole"]

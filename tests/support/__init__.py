"""Problems, reference computations and judges shared by the tests."""

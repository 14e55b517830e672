"""Speed and memory of the kernels, for airspeed velocity; and scripts that measure beside other programs."""

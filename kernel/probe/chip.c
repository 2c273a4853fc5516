// SPDX-License-Identifier: GPL-2.0-only
/* The chip's start and bit timing are canchar's. */
#include "../canchar/chip_sja1000_setup.c"

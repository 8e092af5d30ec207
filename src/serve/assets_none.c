/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For a build without the dashboard. */
#include "serve/assets.h"

const struct asset assets[] = { {} };
const unsigned char dashboard_page_before[1], dashboard_page_before_end[1];
const unsigned char dashboard_page_after[1], dashboard_page_after_end[1];

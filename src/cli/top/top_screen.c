/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/top/top_screen.h"
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "cli/term.h"

/* How long to wait after Escape for the rest of a key sequence. */
#define ESCAPE_MS 50

/* ncurses keeps at most this many events of the mouse. */
#define MOUSE_EVENTS_MAX 8

struct top_screen {
	SCREEN *terminal;
	struct canvas canvas;
	/* Events of the mouse that arrived together, the newest first. */
	MEVENT mouse[MOUSE_EVENTS_MAX];
	u32 nr_mouse;
};

/* The attributes of a style with and without colors. */
static const struct look {
	short foreground, background; /* -1: default color of the terminal */
	attr_t coloured;
	attr_t plain;
} looks[CANVAS_STYLE_NR] = {
	[CANVAS_PLAIN] = { -1, -1, A_NORMAL, A_NORMAL },
	[CANVAS_TITLE] = { -1, -1, A_BOLD, A_BOLD },
	[CANVAS_DIM] = { COLOR_CYAN, -1, A_NORMAL, A_NORMAL },
	[CANVAS_GOOD] = { COLOR_GREEN, -1, A_NORMAL, A_NORMAL },
	[CANVAS_WARNING] = { COLOR_YELLOW, -1, A_NORMAL, A_NORMAL },
	[CANVAS_BAD] = { COLOR_RED, -1, A_BOLD, A_BOLD },
	[CANVAS_BAR] = { -1, -1, A_REVERSE, A_REVERSE },
	[CANVAS_SORTED] = { COLOR_CYAN, -1, A_BOLD | A_REVERSE, A_BOLD },
	[CANVAS_PHASE + PHASE_UNKNOWN] = { -1, -1, A_NORMAL, A_NORMAL },
	[CANVAS_PHASE + PHASE_DATA_LOADING] = { COLOR_BLACK, COLOR_YELLOW, A_NORMAL, A_NORMAL },
	[CANVAS_PHASE + PHASE_GPU_COMPUTE] = { COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_NORMAL },
	[CANVAS_PHASE + PHASE_COLLECTIVE] = { COLOR_WHITE, COLOR_BLUE, A_NORMAL, A_NORMAL },
	[CANVAS_PHASE + PHASE_OPTIMIZER] = { COLOR_BLACK, COLOR_MAGENTA, A_NORMAL, A_NORMAL },
};

static const struct {
	int code;
	enum top_key key;
} codes[] = {
	{ KEY_UP, TOP_KEY_UP },		{ KEY_DOWN, TOP_KEY_DOWN },
	{ KEY_LEFT, TOP_KEY_LEFT },	{ KEY_RIGHT, TOP_KEY_RIGHT },
	{ KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
	{ KEY_HOME, TOP_KEY_HOME },	{ KEY_END, TOP_KEY_END },
	{ KEY_ENTER, TOP_KEY_ENTER },	{ KEY_BACKSPACE, TOP_KEY_BACKSPACE },
	{ KEY_DC, TOP_KEY_BACKSPACE },
};

/* Most terminals send a character for these keys. */
static const struct {
	wint_t character;
	enum top_key key;
} characters[] = {
	{ '\n', TOP_KEY_ENTER },     { '\r', TOP_KEY_ENTER },	  { 0x1b, TOP_KEY_ESCAPE },
	{ 0x7f, TOP_KEY_BACKSPACE }, { '\b', TOP_KEY_BACKSPACE },
};

static void prepare_colours(struct top_screen *screen, enum colour colour)
{
	screen->canvas.colour = has_colors() && term_open(stdout, colour).colour;
	if (!screen->canvas.colour)
		return;
	start_color();
	use_default_colors();
	for (short i = 0; i < CANVAS_STYLE_NR; i++)
		init_pair((short)(i + 1), looks[i].foreground, looks[i].background);
}

int top_screen_open(enum colour colour, struct top_screen **ret)
{
	CLEANUP_FREE struct top_screen *screen = calloc(1, sizeof(*screen));

	if (!screen)
		return -ENOMEM;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	/* The locale decides which characters can be shown. */
	setlocale(LC_CTYPE, "");
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal)
		return -ENODEV;
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
	prepare_colours(screen, colour);
	*ret = TAKE_PTR(screen);
	return 0;
}

struct top_screen *top_screen_close(struct top_screen *screen)
{
	if (!screen)
		return NULL;
	endwin();
	delscreen(screen->terminal);
	canvas_done(&screen->canvas);
	free(screen);
	return NULL;
}

int top_screen_begin(struct top_screen *screen, struct canvas **ret)
{
	int height, width, err;

	getmaxyx(stdscr, height, width);
	err = canvas_resize(&screen->canvas, (u32)width, (u32)height);
	if (err < 0)
		return err;
	*ret = &screen->canvas;
	return 0;
}

void top_screen_end(struct top_screen *screen)
{
	const struct canvas *canvas = &screen->canvas;

	erase();
	for (u32 i = 0; i < canvas->width * canvas->height; i++) {
		const struct canvas_cell *cell = &canvas->cells[i];
		const struct look *look = &looks[cell->style];
		attr_t attributes = canvas->colour ? look->coloured : look->plain;
		short pair = canvas->colour ? (short)(cell->style + 1) : 0;
		wchar_t text[] = { cell->character, 0 };
		cchar_t character;

		if (!cell->character)
			continue;
		setcchar(&character, text, cell->selected ? attributes ^ A_REVERSE : attributes,
			 pair, NULL);
		mvadd_wch((int)(i / canvas->width), (int)(i % canvas->width), &character);
	}
	refresh();
}

/* ncurses reports events of the mouse that arrived together as one key. */
static void take_mouse(struct top_screen *screen)
{
	MEVENT *mouse = screen->mouse;

	while (screen->nr_mouse < MOUSE_EVENTS_MAX && getmouse(&mouse[screen->nr_mouse]) == OK)
		screen->nr_mouse++;
}

static enum top_key mouse_key(struct top_screen *screen, struct top_event *event)
{
	static const struct {
		mmask_t button;
		enum top_key key;
	} buttons[] = {
		{ BUTTON1_PRESSED, TOP_KEY_CLICK },
		{ BUTTON4_PRESSED, TOP_KEY_WHEEL_UP },
		{ BUTTON5_PRESSED, TOP_KEY_WHEEL_DOWN },
	};
	const MEVENT *mouse;

	if (!screen->nr_mouse)
		take_mouse(screen);
	if (!screen->nr_mouse)
		return TOP_KEY_NONE;
	mouse = &screen->mouse[--screen->nr_mouse];
	if (mouse->x < 0 || mouse->y < 0)
		return TOP_KEY_NONE;
	event->x = (u32)mouse->x;
	event->y = (u32)mouse->y;
	for (size_t i = 0; i < ARRAY_SIZE(buttons); i++)
		if (mouse->bstate & buttons[i].button)
			return buttons[i].key;
	return TOP_KEY_NONE;
}

bool top_screen_event(struct top_screen *screen, struct top_event *ret)
{
	struct top_event event = {};
	wint_t got = KEY_MOUSE;
	int kind = screen->nr_mouse ? KEY_CODE_YES : get_wch(&got);

	if (kind == ERR)
		return false;
	if (kind == KEY_CODE_YES && got == KEY_MOUSE)
		event.key = mouse_key(screen, &event);
	for (size_t i = 0; kind == KEY_CODE_YES && i < ARRAY_SIZE(codes); i++)
		if (got == (wint_t)codes[i].code)
			event.key = codes[i].key;
	for (size_t i = 0; kind == OK && i < ARRAY_SIZE(characters); i++)
		if (got == characters[i].character)
			event.key = characters[i].key;
	if (kind == OK && event.key == TOP_KEY_NONE && got >= ' ') {
		event.key = TOP_KEY_CHARACTER;
		event.character = got;
	}
	*ret = event;
	return true;
}

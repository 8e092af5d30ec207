# SPDX-License-Identifier: GPL-2.0-or-later
# Made from the tables of src/cli.
# shellcheck shell=bash
_zernel() {
	local current=${COMP_WORDS[COMP_CWORD]} path=zernel words='' files='' word
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$path $word" in
		'zernel status') path="$path $word" ;;
		'zernel top') path="$path $word" ;;
		'zernel why') path="$path $word" ;;
		'zernel ab') path="$path $word" ;;
		'zernel record') path="$path $word" ;;
		'zernel replay') path="$path $word" ;;
		'zernel export') path="$path $word" ;;
		'zernel doctor') path="$path $word" ;;
		'zernel config') path="$path $word" ;;
		'zernel config show') path="$path $word" ;;
		'zernel config check') path="$path $word" ;;
		'zernel procdb') path="$path $word" ;;
		'zernel procdb list') path="$path $word" ;;
		'zernel procdb show') path="$path $word" ;;
		'zernel procdb export') path="$path $word" ;;
		'zernel procdb import') path="$path $word" ;;
		'zernel procdb forget') path="$path $word" ;;
		'zernel serve') path="$path $word" ;;
		'zernel demo') path="$path $word" ;;
		'zernel version') path="$path $word" ;;
		esac
	done
	case "$path" in
	'zernel') words='status top why ab record replay export doctor config procdb serve demo version --help' ;;
	'zernel status') words='--json --socket --help' ;;
	'zernel top') words='--interval --socket --help' ;;
	'zernel why') words='--seconds --watch --json --socket --help' ;;
	'zernel ab') words='--minutes --bound --seed --json --socket --help' ;;
	'zernel record') words='--seconds --socket --help' files=yes ;;
	'zernel replay') words='--from --to --json --help' files=yes ;;
	'zernel export') words='--perfetto --csv --help' files=yes ;;
	'zernel doctor') words='--json --socket --help' ;;
	'zernel config') words='show check --help' ;;
	'zernel config show') words='--config --json --help' ;;
	'zernel config check') words='--help' files=yes ;;
	'zernel procdb') words='list show export import forget --help' ;;
	'zernel procdb list') words='--json --socket --file --help' ;;
	'zernel procdb show') words='--json --socket --file --help' ;;
	'zernel procdb export') words='--socket --file --help' files=yes ;;
	'zernel procdb import') words='--socket --file --help' files=yes ;;
	'zernel procdb forget') words='--all --socket --file --help' ;;
	'zernel serve') words='--config --listen --port --socket --tls-cert --tls-key --tls-client-ca --token-file --allow-origin --user --help' ;;
	'zernel demo') words='--seconds --socket --help' ;;
	'zernel version') words='--help' ;;
	esac
	case "$path ${COMP_WORDS[COMP_CWORD - 1]}" in
	'zernel status --socket') words='' files=yes ;;
	'zernel top --interval') words='' files='' ;;
	'zernel top --socket') words='' files=yes ;;
	'zernel why --seconds') words='' files='' ;;
	'zernel why --socket') words='' files=yes ;;
	'zernel ab --minutes') words='' files='' ;;
	'zernel ab --bound') words='' files='' ;;
	'zernel ab --seed') words='' files='' ;;
	'zernel ab --socket') words='' files=yes ;;
	'zernel record --seconds') words='' files='' ;;
	'zernel record --socket') words='' files=yes ;;
	'zernel replay --from') words='' files='' ;;
	'zernel replay --to') words='' files='' ;;
	'zernel export --perfetto') words='' files=yes ;;
	'zernel export --csv') words='' files=yes ;;
	'zernel doctor --socket') words='' files=yes ;;
	'zernel config show --config') words='' files=yes ;;
	'zernel procdb list --socket') words='' files=yes ;;
	'zernel procdb list --file') words='' files=yes ;;
	'zernel procdb show --socket') words='' files=yes ;;
	'zernel procdb show --file') words='' files=yes ;;
	'zernel procdb export --socket') words='' files=yes ;;
	'zernel procdb export --file') words='' files=yes ;;
	'zernel procdb import --socket') words='' files=yes ;;
	'zernel procdb import --file') words='' files=yes ;;
	'zernel procdb forget --socket') words='' files=yes ;;
	'zernel procdb forget --file') words='' files=yes ;;
	'zernel serve --config') words='' files=yes ;;
	'zernel serve --listen') words='' files='' ;;
	'zernel serve --port') words='' files='' ;;
	'zernel serve --socket') words='' files=yes ;;
	'zernel serve --tls-cert') words='' files=yes ;;
	'zernel serve --tls-key') words='' files=yes ;;
	'zernel serve --tls-client-ca') words='' files=yes ;;
	'zernel serve --token-file') words='' files=yes ;;
	'zernel serve --allow-origin') words='' files='' ;;
	'zernel serve --user') words='' files='' ;;
	'zernel demo --seconds') words='' files='' ;;
	'zernel demo --socket') words='' files=yes ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"
		[ -z "$files" ] || compgen -f -- "$current")
}
complete -o filenames -F _zernel zernel

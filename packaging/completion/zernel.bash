# SPDX-License-Identifier: GPL-2.0-or-later
# Generated from the tables of commands by zernel-docs. Do not edit.
# shellcheck shell=bash
_zernel() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local path=zernel words='' more=nothing word
	local common='--json --color --help --version'
	if [ "$current" = = ]; then
		current=''
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$path $word" in
		'zernel status') path="$path $word" ;;
		'zernel top') path="$path $word" ;;
		'zernel why') path="$path $word" ;;
		'zernel hang') path="$path $word" ;;
		'zernel memory') path="$path $word" ;;
		'zernel jobs') path="$path $word" ;;
		'zernel ab') path="$path $word" ;;
		'zernel scheduler') path="$path $word" ;;
		'zernel scheduler on') path="$path $word" ;;
		'zernel scheduler off') path="$path $word" ;;
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
	'zernel') words='status top why hang memory jobs ab scheduler record replay export doctor config procdb serve demo version ' more=nothing ;;
	'zernel status') words='--socket ' more=nothing ;;
	'zernel top') words='--interval --socket ' more=nothing ;;
	'zernel why') words='--seconds --watch --ended --lines --folded --svg --pprof --socket ' more=jobs ;;
	'zernel hang') words='--socket ' more=jobs ;;
	'zernel memory') words='--seconds --socket ' more=jobs ;;
	'zernel jobs') words='--socket ' more=nothing ;;
	'zernel ab') words='--minutes --bound --seed --socket ' more=jobs ;;
	'zernel scheduler') words='on off ' more=nothing ;;
	'zernel scheduler on') words='--config --socket ' more=nothing ;;
	'zernel scheduler off') words='--config --socket ' more=nothing ;;
	'zernel record') words='--seconds --stacks --socket ' more=files ;;
	'zernel replay') words='--from --to ' more=files ;;
	'zernel export') words='--perfetto --csv --html ' more=files ;;
	'zernel doctor') words='--socket ' more=nothing ;;
	'zernel config') words='show check ' more=nothing ;;
	'zernel config show') words='--config ' more=nothing ;;
	'zernel config check') words='' more=files ;;
	'zernel procdb') words='list show export import forget ' more=nothing ;;
	'zernel procdb list') words='--socket --file ' more=nothing ;;
	'zernel procdb show') words='--socket --file ' more=nothing ;;
	'zernel procdb export') words='--format --socket --file ' more=files ;;
	'zernel procdb import') words='--socket --file ' more=files ;;
	'zernel procdb forget') words='--all --socket --file ' more=nothing ;;
	'zernel serve') words='--config --listen --port --socket --tls-cert --tls-key --tls-client-ca --token-file --allow-origin --log-level --user ' more=nothing ;;
	'zernel demo') words='--seconds --socket ' more=nothing ;;
	'zernel version') words='' more=nothing ;;
	esac
	case "$path $before" in
	'zernel status --socket') words='' common='' more=files ;;
	'zernel top --interval') words='' common='' more=nothing ;;
	'zernel top --socket') words='' common='' more=files ;;
	'zernel why --seconds') words='' common='' more=nothing ;;
	'zernel why --socket') words='' common='' more=files ;;
	'zernel hang --socket') words='' common='' more=files ;;
	'zernel memory --seconds') words='' common='' more=nothing ;;
	'zernel memory --socket') words='' common='' more=files ;;
	'zernel jobs --socket') words='' common='' more=files ;;
	'zernel ab --minutes') words='' common='' more=nothing ;;
	'zernel ab --bound') words='' common='' more=nothing ;;
	'zernel ab --seed') words='' common='' more=nothing ;;
	'zernel ab --socket') words='' common='' more=files ;;
	'zernel scheduler on --config') words='' common='' more=files ;;
	'zernel scheduler on --socket') words='' common='' more=files ;;
	'zernel scheduler off --config') words='' common='' more=files ;;
	'zernel scheduler off --socket') words='' common='' more=files ;;
	'zernel record --seconds') words='' common='' more=nothing ;;
	'zernel record --stacks') words='' common='' more=nothing ;;
	'zernel record --socket') words='' common='' more=files ;;
	'zernel replay --from') words='' common='' more=nothing ;;
	'zernel replay --to') words='' common='' more=nothing ;;
	'zernel export --perfetto') words='' common='' more=files ;;
	'zernel export --csv') words='' common='' more=files ;;
	'zernel export --html') words='' common='' more=files ;;
	'zernel doctor --socket') words='' common='' more=files ;;
	'zernel config show --config') words='' common='' more=files ;;
	'zernel procdb list --socket') words='' common='' more=files ;;
	'zernel procdb list --file') words='' common='' more=files ;;
	'zernel procdb show --socket') words='' common='' more=files ;;
	'zernel procdb show --file') words='' common='' more=files ;;
	'zernel procdb export --format') words='' common='' more=nothing ;;
	'zernel procdb export --socket') words='' common='' more=files ;;
	'zernel procdb export --file') words='' common='' more=files ;;
	'zernel procdb import --socket') words='' common='' more=files ;;
	'zernel procdb import --file') words='' common='' more=files ;;
	'zernel procdb forget --socket') words='' common='' more=files ;;
	'zernel procdb forget --file') words='' common='' more=files ;;
	'zernel serve --config') words='' common='' more=files ;;
	'zernel serve --listen') words='' common='' more=nothing ;;
	'zernel serve --port') words='' common='' more=nothing ;;
	'zernel serve --socket') words='' common='' more=files ;;
	'zernel serve --tls-cert') words='' common='' more=files ;;
	'zernel serve --tls-key') words='' common='' more=files ;;
	'zernel serve --tls-client-ca') words='' common='' more=files ;;
	'zernel serve --token-file') words='' common='' more=files ;;
	'zernel serve --allow-origin') words='' common='' more=nothing ;;
	'zernel serve --log-level') words='' common='' more=nothing ;;
	'zernel serve --user') words='' common='' more=nothing ;;
	'zernel demo --seconds') words='' common='' more=nothing ;;
	'zernel demo --socket') words='' common='' more=files ;;
	*' --color') words='' common='' more=colors ;;
	esac
	[ "$more" != colors ] || words='auto always never'
	mapfile -t COMPREPLY < <(compgen -W "$words $common" -- "$current"
		[ "$more" != files ] || compgen -f -- "$current")
	[ "$more" = jobs ] || return 0
	while IFS= read -r word; do
		[[ $word != "${current//\\/}"* ]] || COMPREPLY+=("$word")
	done < <(zernel complete -- "${COMP_WORDS[@]}" 2>/dev/null)
}
complete -o filenames -F _zernel zernel

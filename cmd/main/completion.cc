#include "cmd/main/completion.h"

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace fairlead::cmd {
namespace {

// In single quotes for any of the shells.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}
// fish escapes within single quotes.
std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

bool IsWords(const std::string& value) { return absl::StrContains(value, '|'); }
std::string WordsOf(const std::string& value) { return absl::StrReplaceAll(value, {{"|", " "}}); }

// Every command below the program, with its words: "catalog import".
using Visit = std::function<void(const std::string& path, const CommandDescription& command)>;
void ForEach(const CommandDescription& command, const std::string& path, const Visit& visit) {
  visit(path, command);
  for (const CommandDescription& below : command.commands) {
    ForEach(below, absl::StrCat(path, path.empty() ? "" : " ", below.name), visit);
  }
}

// "'run'|'catalog import'": patterns of `case` for all commands.
std::string AllPaths(const CommandDescription& program) {
  std::vector<std::string> paths;
  ForEach(program, "", [&](const std::string& path, const CommandDescription&) {
    if (!path.empty()) paths.push_back(Quoted(path));
  });
  return absl::StrJoin(paths, "|");
}

// The patterns "COMMAND FLAG" of one flag.
std::string FlagPatterns(const std::string& path, const FlagDescription& flag) {
  std::vector<std::string> patterns;
  for (const std::string& name : flag.names) {
    patterns.push_back(Quoted(absl::StrCat(path, " ", name)));
  }
  return absl::StrJoin(patterns, "|");
}

std::string Bash(const CommandDescription& program) {
  std::string values, words;
  ForEach(program, "", [&](const std::string& path, const CommandDescription& command) {
    std::vector<std::string> list;
    for (const CommandDescription& below : command.commands) list.push_back(below.name);
    for (const FlagDescription& flag : command.flags) {
      list.insert(list.end(), flag.names.begin(), flag.names.end());
      if (flag.value.empty()) continue;
      std::string what = "COMPREPLY=()";
      if (flag.value == "FILE") what = "_fairlead_paths -f";
      if (flag.value == "DIR") what = "_fairlead_paths -d";
      if (IsWords(flag.value)) what = absl::StrCat("_fairlead_words ", Quoted(WordsOf(flag.value)));
      absl::StrAppend(&values, "    ", FlagPatterns(path, flag), ") ", what, "; return ;;\n");
    }
    std::string own;
    if (IsWords(command.argument)) {
      list.push_back(WordsOf(command.argument));
    } else if (command.argument == "FILE" || command.argument == "DIR") {
      own = absl::StrCat("[[ $cur == -* ]] || { _fairlead_paths ",
                         command.argument == "DIR" ? "-d" : "-f", "; return; }; ");
    }
    absl::StrAppend(&words, "    ", Quoted(path), ") ", own, "_fairlead_words ",
                    Quoted(absl::StrJoin(list, " ")), " ;;\n");
  });
  return absl::StrCat(
      R"(# Completion of fairlead for bash, made by `fairlead completion bash`.
# shellcheck shell=bash
_fairlead_words() {
  local IFS=$' \t\n'
  # shellcheck disable=SC2207
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
_fairlead_paths() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  # shellcheck disable=SC2207
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
_fairlead() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD - 1]}" command='' next i
  COMPREPLY=()
  # Words are broken at the sign of --flag=value.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev="${COMP_WORDS[COMP_CWORD - 2]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${command:+$command }${COMP_WORDS[i]}"
    case "$next" in
    )",
      AllPaths(program), R"() command="$next" ;;
    esac
  done
  case "$command $prev" in
)",
      values, R"(    *) ;;
  esac
  case "$command" in
)",
      words, R"(    *) ;;
  esac
}
complete -F _fairlead fairlead kubectl-fairlead
)");
}

// "'NAME:ABOUT'": an entry of zsh's _describe.
std::string ZshEntry(const std::string& name, const std::string& about) {
  return Quoted(absl::StrCat(absl::StrReplaceAll(name, {{":", "\\:"}}), ":", about));
}

std::string Zsh(const CommandDescription& program) {
  std::string values, words;
  ForEach(program, "", [&](const std::string& path, const CommandDescription& command) {
    std::vector<std::string> commands, flags;
    for (const CommandDescription& below : command.commands) {
      commands.push_back(ZshEntry(below.name, below.about));
    }
    for (const FlagDescription& flag : command.flags) {
      for (const std::string& name : flag.names) flags.push_back(ZshEntry(name, flag.about));
      if (flag.value.empty()) continue;
      std::string what = "_message value";
      if (flag.value == "FILE") what = "_files";
      if (flag.value == "DIR") what = "_files -/";
      if (IsWords(flag.value)) what = absl::StrCat("compadd -- ", WordsOf(flag.value));
      absl::StrAppend(&values, "    (", FlagPatterns(path, flag), ") ", what, "; return ;;\n");
    }
    if (IsWords(command.argument)) {
      for (const absl::string_view word : absl::StrSplit(command.argument, '|')) {
        commands.push_back(Quoted(word));
      }
    }
    std::string own;
    if (command.argument == "FILE") own = " || _files";
    if (command.argument == "DIR") own = " || _files -/";
    absl::StrAppend(&words, "    (", Quoted(path), ") commands=(", absl::StrJoin(commands, " "),
                    ")\n      flags=(", absl::StrJoin(flags, " "), ")\n      _fairlead_offer", own,
                    " ;;\n");
  });
  return absl::StrCat(
      R"(#compdef fairlead kubectl-fairlead
# Completion of fairlead for zsh, made by `fairlead completion zsh`.
_fairlead_offer() {
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o flag flags
  elif (( $#commands )); then
    _describe command commands
  else
    return 1
  fi
}
_fairlead() {
  local command='' word next
  local -a commands flags
  for word in ${words[2,CURRENT-1]}; do
    next="${command:+$command }$word"
    case "$next" in
      ()",
      AllPaths(program), R"() command="$next" ;;
    esac
  done
  case "$command $words[CURRENT-1]" in
)",
      values, R"(  esac
  case "$command" in
)",
      words, R"(  esac
}
if [[ $funcstack[1] == _fairlead ]]; then
  _fairlead "$@"
else
  compdef _fairlead fairlead kubectl-fairlead
fi
)");
}

std::string Fish(const CommandDescription& program) {
  std::string text =
      "# Completion of fairlead for fish, made by `fairlead completion fish`.\n"
      "complete -c fairlead -f\n";
  ForEach(program, "", [&](const std::string& path, const CommandDescription& command) {
    // Where it holds: all words of the command are there, and none of a command below it.
    std::vector<std::string> conditions;
    for (const absl::string_view word : absl::StrSplit(path, ' ', absl::SkipEmpty())) {
      conditions.push_back(absl::StrCat("__fish_seen_subcommand_from ", word));
    }
    std::vector<std::string> below;
    for (const CommandDescription& child : command.commands) below.push_back(child.name);
    if (!below.empty()) {
      conditions.push_back(
          absl::StrCat("not __fish_seen_subcommand_from ", absl::StrJoin(below, " ")));
    }
    const std::string when = absl::StrCat("complete -c fairlead -n ",
                                          FishQuoted(absl::StrJoin(conditions, "; and ")), " ");
    for (const CommandDescription& child : command.commands) {
      absl::StrAppend(&text, when, "-a ", child.name, " -d ", FishQuoted(child.about), "\n");
    }
    for (const FlagDescription& flag : command.flags) {
      absl::StrAppend(&text, when);
      for (const std::string& name : flag.names) {
        const bool is_long = absl::StartsWith(name, "--");
        absl::StrAppend(&text, is_long ? "-l " : "-s ", name.substr(is_long ? 2 : 1), " ");
      }
      if (flag.value == "FILE" || flag.value == "DIR") {
        absl::StrAppend(&text, "-r -F ");
      } else if (IsWords(flag.value)) {
        absl::StrAppend(&text, "-x -a ", FishQuoted(WordsOf(flag.value)), " ");
      } else if (!flag.value.empty()) {
        absl::StrAppend(&text, "-x ");
      }
      absl::StrAppend(&text, "-d ", FishQuoted(flag.about), "\n");
    }
    if (IsWords(command.argument)) {
      absl::StrAppend(&text, when, "-a ", FishQuoted(WordsOf(command.argument)), "\n");
    } else if (command.argument == "FILE" || command.argument == "DIR") {
      absl::StrAppend(&text, when, "-F\n");
    }
  });
  return text;
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(absl::string_view shell,
                                             const CommandDescription& program) {
  if (shell == "bash") return Bash(program);
  if (shell == "zsh") return Zsh(program);
  if (shell == "fish") return Fish(program);
  return absl::InvalidArgumentError(
      absl::StrCat("completion ", shell, ": must be bash, zsh or fish"));
}

}  // namespace fairlead::cmd

// replay: the decisions of a journal, made again.
#include "cmd/fairlead/journal/replay_command.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/logs/action_words.h"
#include "cmd/fairlead/logs/logger.h"
#include "document/json.h"
#include "journal/player.h"

namespace fairlead::cmd {
namespace {

using journal::Player;

std::string DifferenceText(const Player::Difference& difference) {
  const std::string here = difference.here.has_value()
                               ? Describe(*difference.here)
                               : absl::StrCat("no action ", difference.action + 1);
  return absl::StrCat("step ", difference.step, " at ", LogTime(difference.now), ": action ",
                      difference.action + 1, " of ", difference.recorded,
                      " is another one here: ", here, " (", difference.decided, " actions in all)");
}

void PrintText(const Player& player, const JournalReader& reader, std::ostream& out) {
  const Player::Totals& totals = player.totals();
  out << "Recorded by fairlead " << player.version();
  if (totals.steps > 0) {
    out << ", from " << LogTime(totals.first) << " to " << LogTime(totals.last) << " ("
        << absl::FormatDuration(absl::Trunc(totals.last - totals.first, absl::Seconds(1))) << ")";
  }
  out << ".\n"
      << totals.records << " records: " << totals.steps << " steps, " << totals.decisions
      << " decisions, " << totals.actions << " actions.\n";
  if (reader.cut_off()) {
    out << "The file is cut off: the program was killed while it recorded, or the disk was full.\n";
  }
  if (!player.difference().has_value()) out << "Every decision is the same.\n";
}

void PrintJson(const Player& player, const JournalReader& reader, std::ostream& out) {
  const Player::Totals& totals = player.totals();
  Json json = Json::Object();
  json.Set("version", player.version());
  if (totals.steps > 0) json.Set("from", LogTime(totals.first)).Set("to", LogTime(totals.last));
  json.Set("records", Json::Int(totals.records)).Set("steps", Json::Int(totals.steps));
  json.Set("decisions", Json::Int(totals.decisions)).Set("actions", Json::Int(totals.actions));
  json.Set("cutOff", Json::Bool(reader.cut_off()));
  json.Set("same", Json::Bool(!player.difference().has_value()));
  if (player.difference().has_value()) json.Set("difference", DifferenceText(*player.difference()));
  out << json.Pretty();
}

}  // namespace

absl::Status RunReplay(const ReplayFlags& flags, std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(CheckTableOrJson(flags.output));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<JournalReader> reader,
                            JournalReader::Open(flags.file));
  Player player(Player::FromDocuments(flags.plugins));
  while (!player.difference().has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<std::string> record, reader->Next());
    if (!record.has_value()) break;
    if (const absl::Status played = player.Play(*record); !played.ok()) {
      return absl::Status(
          played.code(),
          absl::StrCat(flags.file, ": record ", player.totals().records, ": ", played.message()));
    }
  }
  flags.output == "json" ? PrintJson(player, *reader, out) : PrintText(player, *reader, out);
  if (!player.difference().has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(DifferenceText(*player.difference()));
}

}  // namespace fairlead::cmd

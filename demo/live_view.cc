#include "demo/live_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/resources.h"
#include "scheduler/verdict/phrases.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::demo {
namespace {

enum class Style : uint8_t { kPlain, kBold, kDim, kGreen, kYellow, kRed, kCyan };

const char* Sequence(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kCyan:
      return "\x1b[36m";
  }
  return "";
}

// One line, filled from the left and never wider than the screen.
class LineBuilder {
 public:
  LineBuilder(int columns, bool color)
      : left_(static_cast<size_t>(std::max(columns, 0))), color_(color) {}

  LineBuilder& Add(absl::string_view text, Style style = Style::kPlain) {
    const std::string shown = cmd::CutToWidth(cmd::Printable(text), left_);
    left_ -= cmd::DisplayWidth(shown);
    if (shown.empty()) return *this;
    if (color_ && style != Style::kPlain) {
      absl::StrAppend(&line_, Sequence(style), shown, "\x1b[0m");
    } else {
      absl::StrAppend(&line_, shown);
    }
    return *this;
  }
  // Exactly `width` columns.
  LineBuilder& Cell(absl::string_view text, size_t width, Style style = Style::kPlain,
                    bool right = false) {
    const std::string shown = cmd::CutToWidth(cmd::Printable(text), width);
    const std::string padding(width - cmd::DisplayWidth(shown), ' ');
    if (right) Add(padding);
    Add(shown, style);
    return right ? *this : Add(padding);
  }
  [[nodiscard]] size_t left() const { return left_; }
  [[nodiscard]] std::string Done() const { return line_; }

 private:
  size_t left_;
  bool color_;
  std::string line_;
};

class Painter {
 public:
  Painter(const LiveFrame& frame, ScreenSize size, bool color)
      : frame_(frame), view_(*frame.view), size_(size), color_(color) {}

  std::vector<std::string> Paint() {
    const std::vector<std::string> queues = Queues(), nodes = Nodes(), waiting = Waiting(),
                                   events = Events();
    // Two lines of header, and one heading per section.
    int room = size_.rows - 2 - 4;
    std::vector<std::string> out = {Header(), Note()};
    // Each section gets at least its share, and unused lines of others in the order of this list.
    const size_t wanted[] = {queues.size(), nodes.size(), std::max<size_t>(waiting.size(), 1),
                             events.size()};
    const int share_percent[] = {30, 15, 30, 25};
    int given[4];
    int left = std::max(room, 0);
    for (int i = 0; i < 4; ++i) {
      given[i] =
          std::min<int>(static_cast<int>(wanted[i]), std::max(room, 0) * share_percent[i] / 100);
      left -= given[i];
    }
    for (int i = 0; i < 4; ++i) {
      const int more = std::clamp(static_cast<int>(wanted[i]) - given[i], 0, left);
      given[i] += more;
      left -= more;
    }
    Section(out, QueueHeading(), queues, given[0]);
    Section(out, NodeHeading(), nodes, given[1]);
    Section(out, Heading(absl::StrCat("WAITING (", PodsWaiting(), " pods)")),
            waiting.empty() ? std::vector<std::string>{"  nothing"} : waiting, given[2]);
    out.push_back(Heading("EVENTS"));
    const size_t shown = std::min(events.size(), static_cast<size_t>(given[3]));
    out.insert(out.end(), events.end() - static_cast<std::ptrdiff_t>(shown), events.end());
    out.resize(static_cast<size_t>(std::max(size_.rows, 0)));
    return out;
  }

 private:
  LineBuilder NewLine() const { return LineBuilder(size_.columns, color_); }
  std::string Heading(absl::string_view text) const {
    return NewLine().Add(text, Style::kBold).Done();
  }

  void Section(std::vector<std::string>& out, const std::string& heading,
               const std::vector<std::string>& lines, int rows) const {
    out.push_back(heading);
    if (rows <= 0) return;
    const auto room = static_cast<size_t>(rows);
    const size_t shown = lines.size() <= room ? lines.size() : room - 1;
    out.insert(out.end(), lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown));
    if (shown < lines.size()) {
      out.push_back(
          NewLine()
              .Add(absl::StrCat("  \xE2\x80\xA6 and ", lines.size() - shown, " more"), Style::kDim)
              .Done());
    }
  }

  int64_t PodsWaiting() const {
    int64_t pods = 0;
    for (const core::WaitingRow& row : view_.waiting) {
      pods += static_cast<int64_t>(row.pods.size());
    }
    return pods;
  }

  std::string Header() const {
    LineBuilder line = NewLine();
    line.Add("Fairlead ", Style::kBold)
        .Add(absl::FormatTime("%a %H:%M:%S", view_.at, absl::UTCTimeZone()), Style::kCyan)
        .Add(absl::StrCat("  ", verdict::Count(HookNodes(), "node", "nodes"), ", ",
                          verdict::Count(view_.gpus_held, "GPU", "GPUs"), "  "))
        .Add(absl::StrCat(cmd::DollarsText(view_.price_micro_usd_per_hour), "/h"), Style::kGreen);
    if (frame_.cost_micro_usd >= 0) {
      line.Add(absl::StrCat("  spent ", cmd::DollarsText(frame_.cost_micro_usd)));
    }
    if (frame_.reactive_cost_micro_usd >= 0) {
      line.Add(absl::StrCat(" (reactive ", cmd::DollarsText(frame_.reactive_cost_micro_usd), ")"),
               Style::kDim);
    }
    return line.Done();
  }

  int64_t HookNodes() const {
    return std::count_if(view_.nodes.begin(), view_.nodes.end(),
                         [](const core::NodeRow& node) { return !node.node_request.empty(); });
  }

  std::string Note() const {
    LineBuilder line = NewLine();
    if (!frame_.title.empty()) line.Add(frame_.title, Style::kDim);
    if (!frame_.note.empty()) {
      line.Add(frame_.title.empty() ? "" : ": ", Style::kDim).Add(frame_.note);
    }
    return line.Done();
  }

  // Columns: name, bar (the remaining width, 10 to 40), numbers.
  static constexpr size_t kNumbers = 34;
  size_t NameWidth() const { return size_.columns >= 100 ? 30 : 24; }
  size_t BarWidth() const {
    const auto columns = static_cast<size_t>(std::max(size_.columns, 0));
    const size_t taken = NameWidth() + kNumbers + 2;
    return std::clamp<size_t>(columns > taken ? columns - taken : 0, 10, 40);
  }

  std::string QueueHeading() const {
    LineBuilder line = NewLine();
    line.Cell("QUEUES", NameWidth(), Style::kBold).Cell("  GPUs", BarWidth() + 2, Style::kBold);
    for (const char* name : {"used", "quota", "limit"}) line.Cell(name, 7, Style::kBold, true);
    return line.Cell("waiting", 9, Style::kBold, true).Done();
  }

  std::vector<std::string> Queues() const {
    int64_t full = 1000;
    for (const core::QueueRow& queue : view_.queues) {
      const core::QueueResourceRow gpu = cmd::ResourceOf(queue, model::kGpuName);
      full = std::max({full, gpu.allocated, gpu.quota, std::min(gpu.limit, gpu.requested)});
    }
    std::vector<std::string> lines;
    for (const core::QueueRow& queue : view_.queues) {
      const core::QueueResourceRow gpu = cmd::ResourceOf(queue, model::kGpuName);
      const bool at_limit = gpu.limit != model::kUnlimited && gpu.allocated >= gpu.limit;
      const bool over = gpu.quota != model::kUnlimited && gpu.allocated > gpu.quota;
      const Style style = at_limit && gpu.allocated > 0 ? Style::kRed
                          : over                        ? Style::kYellow
                                                        : Style::kGreen;
      const std::string indent(1 + static_cast<size_t>(queue.depth) * 2, ' ');
      LineBuilder line = NewLine();
      line.Cell(absl::StrCat(indent, queue.name), NameWidth()).Add("  ");
      line.Add(QueueBar(gpu.allocated, gpu.quota, full, static_cast<int>(BarWidth())), style);
      for (const int64_t amount : {gpu.allocated, gpu.quota, gpu.limit}) {
        line.Cell(cmd::AmountCell(model::kGpuName, amount), 7, Style::kPlain, true);
      }
      line.Cell(queue.problem.empty() ? absl::StrCat(queue.waiting_workloads) : queue.problem, 9,
                queue.problem.empty() ? Style::kPlain : Style::kRed, true);
      lines.push_back(line.Done());
    }
    return lines;
  }

  std::string NodeHeading() const {
    LineBuilder line = NewLine();
    line.Cell("NODES", NameWidth() + 2, Style::kBold);
    return line.Cell("GPUs used", 12, Style::kBold, true)
        .Cell("$/h", 10, Style::kBold, true)
        .Done();
  }

  // By type: the number in each state.
  std::vector<std::string> Nodes() const {
    struct Group {
      std::map<std::string, int64_t> by_status;
      int64_t used = 0, total = 0, price = 0;
    };
    std::map<std::pair<std::string, std::string>, Group> groups;
    for (const core::NodeRow& node : view_.nodes) {
      const std::string type = node.instance_type.empty() ? "(no type)" : node.instance_type;
      Group& group = groups[{type, node.capacity_type}];
      ++group.by_status[node.status];
      group.used += model::Get(node.used, model::kGpuName);
      group.total += model::Get(node.allocatable, model::kGpuName);
      group.price += node.price_micro_usd_per_hour;
    }
    std::vector<std::string> lines;
    for (const auto& [key, group] : groups) {
      std::vector<std::string> states;
      for (const auto& [status, count] : group.by_status) {
        states.push_back(absl::StrCat(count, " ", status));
      }
      LineBuilder line = NewLine();
      line.Cell(absl::StrCat(" ", key.first,
                             key.second.empty() || key.second == "on-demand"
                                 ? ""
                                 : absl::StrCat(" (", key.second, ")")),
                NameWidth() + 2);
      line.Cell(group.total == 0 ? "-"
                                 : absl::StrCat(cmd::AmountCell(model::kGpuName, group.used), "/",
                                                cmd::AmountCell(model::kGpuName, group.total)),
                12, Style::kPlain, true);
      line.Cell(group.price == 0 ? "-" : cmd::DollarsText(group.price), 10, Style::kPlain, true);
      lines.push_back(line.Add(absl::StrCat("  ", absl::StrJoin(states, ", "))).Done());
    }
    return lines;
  }

  // Equal reasons in one queue share a line.
  std::vector<std::string> Waiting() const {
    struct Group {
      const core::WaitingRow* first;
      int64_t pods = 0, workloads = 0;
    };
    std::vector<Group> groups;
    std::map<std::pair<std::string, verdict::Code>, size_t> place;
    for (const core::WaitingRow& row : view_.waiting) {
      const auto [found, added] =
          place.try_emplace(std::make_pair(row.queue, row.verdict.code), groups.size());
      if (added) groups.push_back({&row});
      groups[found->second].pods += static_cast<int64_t>(row.pods.size());
      ++groups[found->second].workloads;
    }
    std::vector<std::string> lines;
    for (const Group& group : groups) {
      const core::WaitingRow& row = *group.first;
      const verdict::Category category = verdict::CategoryOf(row.verdict.code);
      const Style style = category == verdict::Category::kCapacity ? Style::kCyan
                          : category == verdict::Category::kPolicy ? Style::kYellow
                                                                   : Style::kRed;
      std::string name = row.workload;
      if (group.workloads > 1) absl::StrAppend(&name, " +", group.workloads - 1);
      lines.push_back(
          NewLine()
              .Cell(absl::StrCat(" ", name), NameWidth())
              .Add("  ")
              .Add(verdict::CodeName(row.verdict.code), style)
              .Add(absl::StrCat(" ", cmd::AgeText(view_.at - row.since), "  ", row.message))
              .Done());
    }
    return lines;
  }

  std::vector<std::string> Events() const {
    std::vector<std::string> lines;
    for (const std::string& event : frame_.events) {
      lines.push_back(NewLine().Add(absl::StrCat(" ", event)).Done());
    }
    return lines;
  }

  const LiveFrame& frame_;
  const core::View& view_;
  const ScreenSize size_;
  const bool color_;
};

}  // namespace

std::string QueueBar(int64_t allocated, int64_t quota, int64_t full, int width) {
  const auto at = [&](int64_t amount) {
    if (full <= 0 || amount <= 0) return 0;
    const int64_t capped = std::min(amount, full);
    // Rounded to nearest; a non-zero amount is at least one column.
    return std::max(1, static_cast<int>((capped * width + full / 2) / full));
  };
  const int filled = at(allocated);
  const bool bounded = quota != model::kUnlimited;
  const int mark = bounded ? at(quota) : width + 1;
  std::string bar;
  for (int i = 0; i < width; ++i) {
    if (i < filled) {
      bar += i < mark ? "\xE2\x96\x88" : "\xE2\x96\x92";  // full block, medium shade
    } else {
      bar += bounded && quota > 0 && i == mark - 1 ? "\xE2\x94\x82" : "\xC2\xB7";  // bar, dot
    }
  }
  return bar;
}

std::vector<std::string> DrawLive(const LiveFrame& frame, ScreenSize size, bool color) {
  return Painter(frame, size, color).Paint();
}

}  // namespace fairlead::demo

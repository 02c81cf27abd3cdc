// Nodes for pods with bonds: whether such a pod fits on a node depends on pods of other nodes.
//
// Packing by classes (packing.h) asks about one empty node at a time. That is exact while pods of
// other nodes do not matter, and wrong for required affinity, for required anti-affinity over more
// than a host name, and for spread. Pods with such a term, and pods that such a term selects, are
// planned one after another on a rehearsal of the whole plan, where everything planned so far and
// everything in the cluster is seen by the filters themselves.
//
//   item       Its pods take, class by class, what fits on present nodes and on planned ones, each
//              the one that the scheduler would choose; for the rest a node is bought. Classes that
//              need a later one get further rounds while something is placed, but not in a gang:
//              the scheduler places its pods in their order. An item of which a minimum cannot be
//              placed buys nothing.
//   node       The lowest price per pod that it takes, of all pods of the kind that wait; then
//              fewer GPUs, then the order of offers. While a node takes as many as the one bought
//              last, it is bought again without asking about the others. Else offers are asked
//              about best first, by bounds from above: the amounts of the empty node, and what
//              the domain of an offer has taken, which holds for all offers in the same domains.
//              Of pods that name GPU models in order (instance-gpu-skus), a model is looked at
//              when none before it has a node to buy.
//   spread     Every zone (or other value of a label that pods spread over) on offer counts as a
//              domain, though nothing is there yet: else all would be legal in the first one.
//   domains    An item with affinity over a label is also tried on the offers of each value of the
//              label alone; the cheapest try that places all of it is taken. So the first node does
//              not decide for a zone that has no nodes for the rest.
//
// Greedy, not the cheapest plan; but what it plans, filters have agreed to as a whole. A node that
// is bought late may be taken by a pod that comes early: so the caller plans again with all nodes
// that were bought, until no further one is needed (Planning::EmitBonds).
//
// Complexity: a pod costs a look at the best node of an order (Rehearsal::PlaceBest), a node that
// is bought some questions by domain, O(offers) each. The work of a plan is bounded, as Rehearsal
// counts it, against demand that is made to be slow (kMaxBondWork): what is left then is planned in
// the next step.
// One item has at most a quarter of it, so that others are planned all the same. Deterministic.
// Thread-safety: none. Ownership: keeps the demand, the offers and the rehearsal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/caps.h"
#include "autoscale-hook/planner/placement.h"

namespace fairlead::hook {

// What a plan by classes does not see of the pods; "" if there is nothing. ("avoid each other over
// zone")
std::string BondOf(const model::PodSpec& spec);
// By item: some of its pods have bonds, or a term of pods that have may select them. Items with
// topology rules are left out (plan_domains.h).
std::vector<bool> ItemsWithBonds(const Demand& demand);

bool Allows(const CapsLeft& left, const Offer& offer);
void TakeFrom(CapsLeft& left, const Offer& offer);
// More was taken than there was.
bool Overdrawn(const CapsLeft& left);

class BondPlanner {
 public:
  // `caps`: of everything; what they do not allow at all opens no domain. `max_work`: from now on.
  BondPlanner(const Demand& demand, const std::vector<Offer>& offers, const CapsLeft& caps,
              Rehearsal& rehearsal, int64_t max_work);

  struct Result {
    bool placed = false;  // its minimum at least
    int64_t pods = 0;     // placed
    // (node, pods), ascending by node; nodes are numbered in the order of AddNode() and purchase.
    std::vector<std::pair<int, int64_t>> on;
    std::vector<int> bought;  // offers, in the order of being bought
    int64_t price_micro_usd_per_hour = 0;
    int64_t price_of_choice = 0;  // Offer::PriceOfChoice
    int64_t later_models = 0;     // GPU models that come before those that were bought, in all
    bool capped = false;          // some node was not asked about for a cap
    bool spent = false;           // the work that may be done was done before the end
    std::string why;              // not all placed: what most of the nodes on offer say
  };

  // A node that is planned already, with its pods; its number.
  int AddNode(int offer, const std::vector<Placement::Load>& pods);
  // Places what it can of the item and buys for it within the caps, which become less. Not placed:
  // everything is as before.
  Result Place(size_t item, CapsLeft& left);
  // Back to an empty plan. (What the rehearsal had before this planner came is gone, too.)
  void Clear();
  // Items are placed beside what is planned now: Again() takes back what was placed since, and what
  // was bought for it, and nothing else, so that what was found out about the rest stays known.
  void Keep() { kept_ = {rehearsal_.Mark(), nodes_.size()}; }
  void Again();
  [[nodiscard]] int64_t questions() const { return questions_; }
  // Since it was made. Place() places nothing more if it has come to the limit.
  [[nodiscard]] int64_t work() const { return rehearsal_.work() - work_before_; }
  void LimitWork(int64_t max_work) { max_work_ = max_work; }

 private:
  // One try to place an item.
  struct Attempt {
    const DemandItem& item;
    const std::vector<int>& offers;
    CapsLeft left;
    std::vector<int64_t> remaining;  // by class
    Result result;
  };
  struct Choice {
    int offer = -1;
    int64_t fits = 0;
  };
  struct Candidate {
    int offer = -1;
    int64_t most = 0;    // no more pods than this
    bool asked = false;  // no fewer, either
  };
  struct Answer {
    int64_t fits = 0;
    bool others_refuse = false;  // Rehearsal::OthersRefuse, of the next pod
    std::string why;             // if none fits
  };

  void FindDomains(const CapsLeft& caps);
  void AddDomains();
  // Those of each value of every label that its pods attract each other over.
  [[nodiscard]] std::vector<std::vector<int>> OffersByDomain(const DemandItem& item) const;
  Result Try(size_t item, const std::vector<int>& offers, CapsLeft& left);
  bool Round(Attempt& attempt);
  void PlaceOnKnown(Attempt& attempt, size_t pod_class);
  bool Buy(Attempt& attempt, size_t pod_class);
  Choice Choose(Attempt& attempt, size_t pod_class);
  using Spec = std::shared_ptr<const model::PodSpec>;
  Choice ChooseOfRank(Attempt& attempt, const Spec& spec, int64_t want, int rank,
                      std::map<std::string, int64_t>& reasons);
  // Those of the rank that the caps allow.
  std::vector<Candidate> CandidatesFor(Attempt& attempt, const Spec& spec, int64_t want, int rank);
  // What the answer about one of them says of the others.
  void Bound(std::vector<Candidate>& candidates, const Candidate& asked, const Spec& spec,
             const Answer& answer, std::map<std::string, int64_t>& reasons);
  [[nodiscard]] bool Spent() const { return work() >= max_work_ || work() >= max_work_of_item_; }
  // By offer: no more pods than this fit on an empty node.
  const std::vector<int64_t>& BoundsFor(const Spec& spec);
  // By offer: equal numbers have equal values of the labels.
  const std::vector<int>& DomainsBy(const std::vector<std::string>& labels);
  // Why an empty node of the offer takes no pod whatever is planned.
  const std::string& OwnReason(const Spec& spec, int offer);
  // By offer: WishRank for the pods. Null: their wishes say nothing about offers.
  const std::vector<int>* RanksFor(const model::PodSpec& spec);
  // How many of `want` an empty node of the offer would take now.
  Answer Ask(const Spec& spec, int offer, int64_t want);
  void Put(Attempt& attempt, size_t pod_class, int node, int64_t pods);

  const Demand& demand_;
  const std::vector<Offer>& offers_;
  Rehearsal& rehearsal_;
  std::vector<model::Node> templates_;  // by offer
  std::vector<int> by_price_;           // offers, cheapest first
  std::vector<model::Node> domains_;    // nodes without room, one in each domain of a spread
  std::vector<int> nodes_;              // planned: the rehearsal's number of each, ascending
  // Pods of the kind in all items with bonds, and those that have no place yet.
  std::map<const model::PodSpec*, int64_t> all_, waiting_;
  std::vector<Spec> kinds_;  // their specs, in the order of the demand
  std::map<const model::PodSpec*, std::vector<int64_t>> bounds_;  // BoundsFor()
  std::map<std::vector<std::string>, std::vector<int>> domains_by_;
  std::map<const model::PodSpec*, std::vector<std::string>> own_reasons_;  // "": not asked for yet
  std::map<const model::PodSpec*, Choice> last_choice_;
  std::map<const model::PodSpec*, std::vector<int>> ranks_;
  // Kinds that found no place, or nothing to buy, and what was planned then: as long as that is
  // planned, they need not be asked about again.
  struct Refusal {
    uint64_t changes = 0;
    bool capped = false;
    std::string why;
  };
  std::map<const model::PodSpec*, Refusal> nowhere_, nothing_to_buy_;
  std::pair<size_t, size_t> kept_ = {0, 0};  // mark of the rehearsal, planned nodes
  uint64_t changes_ = 1, last_change_ = 1;  // the number of what is planned now, and the last dealt
  int64_t questions_ = 0;
  const int64_t work_before_;
  int64_t max_work_, max_work_of_item_;
};

}  // namespace fairlead::hook

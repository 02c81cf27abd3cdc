package karpenter

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// outOfStockFile is the environment variable with the path of a file: the instance types that cannot be had, one per line.
// The file is read at each launch, so a test may change it while Karpenter runs. Without the variable, every type can be had.
const outOfStockFile = "OUT_OF_STOCK_FILE"

// unavailableFor is the environment variable with a duration: after a stock-out, Karpenter plans without the type for so
// long. Providers of clouds do the same, because Karpenter itself would ask for the type again at once.
const unavailableFor = "UNAVAILABLE_FOR"

const defaultUnavailable = 3 * time.Minute

// stock decorates a cloud provider so that some of its instance types cannot be had. As a cloud does, it launches what is
// left of the types that a NodeClaim allows, and answers with an InsufficientCapacityError if nothing is left.
type stock struct {
	cloudprovider.CloudProvider
	file string
	rest time.Duration
	now  func() time.Time

	mutex sync.Mutex
	until map[string]time.Time // by type: planned without until then
}

// withStock returns the provider as it is if no file of sold-out types is named.
func withStock(provider cloudprovider.CloudProvider) (cloudprovider.CloudProvider, error) {
	file := os.Getenv(outOfStockFile)
	if file == "" {
		return provider, nil
	}
	rest := defaultUnavailable
	if text := os.Getenv(unavailableFor); text != "" {
		var err error
		if rest, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("%s: %w", unavailableFor, err)
		}
	}
	return &stock{CloudProvider: provider, file: file, rest: rest, now: time.Now, until: map[string]time.Time{}}, nil
}

// Create launches a type that is in stock.
func (s *stock) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	soldOut, err := s.soldOut()
	if err != nil {
		return nil, err
	}
	left := claim.DeepCopy()
	for i, requirement := range left.Spec.Requirements {
		if requirement.Key != corev1.LabelInstanceTypeStable {
			continue
		}
		wanted := requirement.Values
		left.Spec.Requirements[i].Values = slices.DeleteFunc(slices.Clone(wanted), soldOut.Has)
		s.rememberSoldOut(wanted, soldOut)
		if len(left.Spec.Requirements[i].Values) == 0 {
			return nil, cloudprovider.NewInsufficientCapacityError(
				fmt.Errorf("out of stock: %s", strings.Join(wanted, ", ")))
		}
	}
	return s.CloudProvider.Create(ctx, left)
}

// GetInstanceTypes returns every type; those that were found sold out a moment ago have no available offering.
func (s *stock) GetInstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	types, err := s.CloudProvider.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.now()
	types = slices.Clone(types)
	for i, known := range types {
		if !now.Before(s.until[known.Name]) {
			continue
		}
		unavailable := &cloudprovider.InstanceType{}
		known.DeepCopyInto(unavailable)
		for _, offering := range unavailable.Offerings {
			offering.Available = false
		}
		types[i] = unavailable
	}
	return types, nil
}

func (s *stock) soldOut() (sets.Set[string], error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil, fmt.Errorf("reading the types that are out of stock: %w", err)
	}
	return sets.New(strings.Fields(string(text))...), nil
}

func (s *stock) rememberSoldOut(wanted []string, soldOut sets.Set[string]) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range wanted {
		if soldOut.Has(name) {
			s.until[name] = s.now().Add(s.rest)
		}
	}
}

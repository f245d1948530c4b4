package metrics

import "sync"

// Bounds of labels: how many tenants, models, limits and rules have series of their own. Tools that are written in Go always have;
// maxTools bounds the others, which come from documents.
const (
	maxTenants = 500
	maxTools   = 200
	maxModels  = 100
	maxLimits  = 500
	maxRules   = 1_000
)

const (
	// other is the label that all names beyond a bound share.
	other = "(other)"
	// none is the label of calls of tools that do not exist, whose names models make up, and of requests for operations that do not exist.
	none = "(none)"
)

// names bounds the values of a label: the first ones are kept, all others become other.
type names struct {
	mu   sync.RWMutex
	max  int
	seen map[string]bool
}

func newNames(most int) *names { return &names{max: most, seen: map[string]bool{}} }

// keep makes sure that names are never replaced. They do not count for the bound.
func (n *names) keep(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		if !n.seen[name] {
			n.seen[name] = true
			n.max++
		}
	}
}

// of returns the value of the label for a name.
func (n *names) of(name string) string {
	n.mu.RLock()
	known, full := n.seen[name], len(n.seen) >= n.max
	n.mu.RUnlock()
	if known {
		return name
	}
	if full {
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen[name] && len(n.seen) >= n.max {
		return other
	}
	n.seen[name] = true
	return name
}

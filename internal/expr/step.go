package expr

import (
	"cmp"
	"slices"
	"sync"
)

// maxStepEnvs limits how many step environments are kept, because documents choose the extra names.
const maxStepEnvs = 100

// stepEnvs caches environments. They are immutable, and making one takes a millisecond.
var stepEnvs envMemo

type envMemo struct {
	mu   sync.Mutex
	made map[string]*Env
}

// StepEnv returns the environment of [StepUse] with these extra variables. Environments are cached for each set of variables.
func StepEnv(extra ...Variable) (*Env, error) {
	sorted := slices.SortedFunc(slices.Values(extra), func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return stepEnvs.get(StepUse(sorted...))
}

func (m *envMemo) get(use Use) (*Env, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if env, ok := m.made[use.Name]; ok {
		return env, nil
	}
	env, err := NewEnv(use)
	if err != nil {
		return nil, err
	}
	if m.made == nil || len(m.made) >= maxStepEnvs {
		m.made = map[string]*Env{}
	}
	m.made[use.Name] = env
	return env, nil
}

package activities

import (
	"sync"
	"time"
)

const (
	// quickAnswer is how long an answer of a quick model takes at most.
	quickAnswer = time.Second
	// quickAnswers is how many answers in a row must have been quick for a model to be known as quick. An answer that is given up because it
	// was not quick is asked for again, so at most one request in quickAnswers is paid for in vain.
	quickAnswers = 10
	// maxPaces limits the models that are remembered.
	maxPaces = 1000
)

// pace remembers how quickly models have answered in this process. The zero value is ready to use.
type pace struct {
	mu sync.Mutex
	// inARow counts the latest quick answers of each model, up to quickAnswers.
	inARow map[string]int
}

// note records how long a model took to answer, or that it did not.
func (p *pace) note(model string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || took > quickAnswer {
		delete(p.inARow, model)
		return
	}
	if p.inARow == nil || len(p.inARow) >= maxPaces && p.inARow[model] == 0 {
		p.inARow = map[string]int{} // a model that is used will soon be known again
	}
	p.inARow[model] = min(p.inARow[model]+1, quickAnswers)
}

// quick reports whether a model is known to answer at once: because it is a script, or because its latest answers were quick.
func (p *pace) quick(model string) bool {
	if scripted(model) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inARow[model] >= quickAnswers
}

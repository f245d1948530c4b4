package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// alternate measures every side once per pair. The order of the sides rotates from pair to pair. It returns the values by side and pair.
func (b *bench) alternate(ctx context.Context, figure string, sides []side, measure func(ctx context.Context, s side) (float64, error)) ([][]float64, error) {
	values := make([][]float64, len(sides))
	for pair := range b.pairs {
		for i := range sides {
			at := (pair + i) % len(sides)
			err := b.profiled(figure, sides[at].name, func() error {
				v, err := measure(ctx, sides[at])
				values[at] = append(values[at], v)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		b.say("pair %d of %d: %s", pair+1, b.pairs, latestOf(sides, values))
	}
	return values, nil
}

func latestOf(sides []side, values [][]float64) string {
	text := ""
	for i, s := range sides {
		text += fmt.Sprintf("%s %.1f  ", s.name, values[i][len(values[i])-1])
	}
	return text
}

// atOnce calls do for 0 to n-1, at most limit at a time. After an error it starts no more calls; it returns the first error.
func atOnce(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(n, limit) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx) //nolint:wrapcheck // the error of do or of the caller's context
}

func planInput(p plan) (json.RawMessage, error) {
	input, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return input, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// pause waits for d, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}

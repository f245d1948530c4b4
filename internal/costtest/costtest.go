// Package costtest measures what code allocates, for tests of bounds on memory.
package costtest

import (
	"runtime"
	"testing"
)

// AtMost runs a function and fails the test if it allocates more than so many bytes in all, freed ones included. Other
// goroutines' allocations count too, so the test must not be parallel.
func AtMost(t testing.TB, bytes uint64, run func()) {
	t.Helper()
	if used := Allocated(run); used > bytes {
		t.Fatalf("%d bytes were allocated, at most %d are allowed", used, bytes)
	}
}

// Allocated runs a function and returns how many bytes the process allocated meanwhile, freed ones included.
func Allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

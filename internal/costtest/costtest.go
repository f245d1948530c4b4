// Package costtest measures how much memory code allocates, for tests of limits.
package costtest

import (
	"runtime"
	"testing"
)

// AtMost runs a function and fails the test if it allocates more than the given number of bytes, including bytes that are freed again. The
// allocations of other goroutines count too, so the test must not be parallel.
func AtMost(t testing.TB, bytes uint64, run func()) {
	t.Helper()
	if used := Allocated(run); used > bytes {
		t.Fatalf("%d bytes were allocated, at most %d are allowed", used, bytes)
	}
}

// Allocated runs a function and returns how many bytes the process allocated meanwhile, including bytes that were freed again.
func Allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

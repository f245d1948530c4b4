//go:build race

package spec_test

// slower is how much longer things take under the race detector.
const slower = 15

//go:build race

package spec_test

// slack is how much more may be spent under the race detector.
const slack = 20

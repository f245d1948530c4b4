//go:build !race

package spec_test

// slack is the factor by which a test may exceed the limits.
const slack = 1

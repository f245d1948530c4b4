package main

import (
	"fmt"
	"slices"
)

// spread is the median of several measurements, with their range.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median: quantile(values, 0.5), low: slices.Min(values), high: slices.Max(values)}
}

// quantile returns the value below which the share q of the values lies, with linear interpolation.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// show formats the median and the range with that many decimals and the unit.
func (s spread) show(decimals int, unit string) string {
	return fmt.Sprintf("%.*f%s (%.*f–%.*f)", decimals, s.median, unit, decimals, s.low, decimals, s.high)
}

// ratios divides the values pair by pair.
func ratios(over, under []float64) spread {
	list := make([]float64, min(len(over), len(under)))
	for i := range list {
		list[i] = over[i] / under[i]
	}
	return spreadOf(list)
}

// differences subtracts the values pair by pair.
func differences(more, less []float64) spread {
	list := make([]float64, min(len(more), len(less)))
	for i := range list {
		list[i] = more[i] - less[i]
	}
	return spreadOf(list)
}

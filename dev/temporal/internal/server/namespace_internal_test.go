package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAssign_GivesEachAttributeAColumnOfItsType(t *testing.T) {
	t.Parallel()
	got, err := assign(nil, map[string]string{"A": "Keyword", "B": "Keyword", "C": "KeywordList", "D": "Int"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Keyword01": "A", "Keyword02": "B", "KeywordList01": "C", "Int01": "D"}, got)
}

func TestAssign_KeepsTheColumnsOfExistingAttributes(t *testing.T) {
	t.Parallel()
	existing := map[string]string{"Keyword01": "B", "Keyword03": "Other"}
	got, err := assign(existing, map[string]string{"A": "Keyword", "B": "Keyword", "C": "Keyword"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Keyword01": "B", "Keyword02": "A", "Keyword03": "Other", "Keyword04": "C"}, got)
	require.Len(t, existing, 2, "the argument is not changed")
}

func TestAssign_RefusesWhatHasNoColumn(t *testing.T) {
	t.Parallel()
	_, err := assign(nil, map[string]string{"A": "Keywrod"})
	require.ErrorContains(t, err, "the type of the search attribute A")
	_, err = assign(nil, map[string]string{"A": "Int", "B": "Int", "C": "Int", "D": "Int"})
	require.ErrorContains(t, err, "no column of type Int is left for the search attribute D")
}

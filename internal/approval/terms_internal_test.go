package approval

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// strictTerms has a value other than the default in every field of the terms. Fields that exclude each other are in later elements.
func strictTerms() []jig.Terms {
	return []jig.Terms{
		{
			Requirements: []jig.Requirement{{
				Rule: "pay/large", Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: 2,
				Escalate: []jig.Escalation{{After: jig.Duration(time.Hour), Approvers: jig.Approvers{People: []string{"dora"}}}},
			}},
			NotRequester: true, ByDefault: true, Proof: jig.ProofPasskey, Remind: jig.Duration(4 * time.Hour), OnExpiry: jig.ExpiryFail,
		},
		{RequesterMay: "pay/small"},
	}
}

func TestTerms_EveryFieldIsInTheTable(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, one := range terms() {
		listed = append(listed, one.fields...)
	}
	var fields []string
	for f := range reflect.TypeFor[jig.Terms]().Fields() {
		fields = append(fields, f.Name)
	}
	require.ElementsMatch(t, fields, listed, "the table of terms and the fields of jig.Terms")
}

// Every term says something for people, is kept when terms are combined, and is noticed when a rule drops it.
func TestTerms_EveryFieldHasWordsAndIsCombinedAndCompared(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, strict := range strictTerms() {
		for f, value := range reflect.ValueOf(strict).Fields() {
			if value.IsZero() {
				continue
			}
			seen[f.Name] = true
			require.False(t, jig.ProofClaimed.AtLeast(strict.Proof) && strict.Plain(), "terms with %s are plain", f.Name)
			without := strict
			reflect.ValueOf(&without).Elem().FieldByIndex(f.Index).SetZero()
			require.NotEqual(t, Conditions(jig.Pending{Terms: &without}), Conditions(jig.Pending{Terms: &strict}), "%s has no words", f.Name)
			require.Equal(t, value.Interface(), reflect.ValueOf(Stricter(jig.Terms{}, strict)).FieldByIndex(f.Index).Interface(), "%s of the second rule is lost", f.Name)
			require.Equal(t, value.Interface(), reflect.ValueOf(Stricter(strict, jig.Terms{})).FieldByIndex(f.Index).Interface(), "%s of the first rule is lost", f.Name)
			if slices.Contains([]string{"ByDefault", "Remind"}, f.Name) { // no rule sets the one, and the other does not say who decides
				continue
			}
			before, after := strict, without
			if f.Name == "RequesterMay" { // the field that makes terms looser
				before, after = without, strict
			}
			looser, check := Looser(before, after)
			require.NotEmpty(t, append(looser, check...), "nobody learns that a rule drops %s", f.Name)
			looser, check = Looser(strict, strict)
			require.Empty(t, append(looser, check...))
		}
	}
	for f := range reflect.TypeFor[jig.Terms]().Fields() {
		require.True(t, seen[f.Name], "strictTerms has no value for %s", f.Name)
	}
}

func TestConditions_SayEveryTermInOneSentence(t *testing.T) {
	t.Parallel()
	asked := jig.Pending{RequestedBy: "ana", Terms: &strictTerms()[0]}
	require.Equal(t, []string{
		"needs 2 of group finance (pay/large); after 1h also dora",
		"ana may not decide, having requested it (the default)",
		"decisions need the proof passkey",
		"a reminder every 4h",
		"if nobody decides in time, the session fails",
	}, Conditions(asked))
	asked.Terms = &strictTerms()[1]
	require.Equal(t, []string{"anybody may decide", "those who requested it may decide (pay/small)"}, Conditions(asked))
	asked.Terms = nil
	require.Equal(t, []string{"anybody may decide"}, Conditions(asked))
	asked.Kind = jig.PendingReconcile
	require.Empty(t, Conditions(asked), "the tenant's settings say who may reconcile")
}

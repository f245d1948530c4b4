package retype_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
)

func song(version string, seconds entity.FieldType) entity.Type {
	return entity.Type{Name: "song", Version: version, Fields: []entity.Field{{Name: "seconds", Type: seconds}}}
}

// checker returns the checker of a tenant with the given number of songs, which were checked against old. Other types are not known.
func checker(songs int64, old entity.Type) retype.Checker {
	return retype.Checker{
		Counts: func(context.Context, string) ([]entity.Count, error) {
			return []entity.Count{{Type: "song", Count: songs}, {Type: "lost", Count: 1}}, nil
		},
		TypeOf: func(_ context.Context, _, name string) (entity.Type, bool, error) {
			return old, name == old.Name, nil
		},
	}
}

func TestCheck_RefusesWhatContentMayNotFit(t *testing.T) {
	t.Parallel()
	old := song("v1", entity.FieldNumber)
	for name, row := range map[string]struct {
		songs  int64
		latest entity.Type
		gone   []string
		basis  []bundle.TypeBasis
		says   string
	}{
		"fits": {songs: 2, latest: song("v2", entity.FieldNumber), basis: []bundle.TypeBasis{{Type: "song", Version: "v1"}}},
		"adds": {
			songs: 2, latest: entity.Type{Name: "song", Version: "v2", Fields: []entity.Field{
				{Name: "seconds", Type: entity.FieldNumber},
				{Name: "mood", Type: entity.FieldText, Required: true, Default: []byte(`"calm"`)},
				{Name: "key", Type: entity.FieldText, Default: []byte(`"C"`)},
			}},
			basis: []bundle.TypeBasis{{Type: "song", Version: "v1", Defaults: map[string]json.RawMessage{"mood": []byte(`"calm"`)}}},
		},
		"breaks":         {songs: 2, latest: song("v2", entity.FieldText), says: "song.seconds: its type is text; it was number"},
		"nobody uses it": {latest: song("v2", entity.FieldText), basis: []bundle.TypeBasis{{Type: "song"}}},
		"new":            {latest: entity.Type{Name: "album"}, gone: []string{"song"}, basis: []bundle.TypeBasis{{Type: "album"}, {Type: "song"}}},
		"gone":           {songs: 2, latest: entity.Type{Name: "album"}, gone: []string{"song"}, says: "but 2 entities have it"},
		"nobody knows":   {latest: entity.Type{Name: "lost"}, basis: []bundle.TypeBasis{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			basis, err := checker(row.songs, old).Check(t.Context(), "acme", "files", []entity.Type{row.latest}, row.gone)
			if row.says == "" {
				require.NoError(t, err)
				require.Equal(t, row.basis, basis)
				return
			}
			e := jig.AsError(err)
			require.Equal(t, jig.CodeConflict, e.Code)
			require.Equal(t, retype.ReasonFieldsChanged, e.Reason)
			require.Equal(t, "files", e.Field)
			require.Contains(t, e.Message, row.says)
			require.Len(t, e.Violations, 1)
		})
	}
}

func TestAgain_TriesOnceMoreAfterAConflict(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]int{"type_changed": 2, "fields_changed": 1, "": 1} {
		tries := 0
		_, err := retype.Again(func() (int, error) {
			tries++
			return 0, jig.Errorf(jig.CodeConflict, "no").WithReason(reason)
		}, bundle.ReasonTypeChanged)
		require.Error(t, err)
		require.Equal(t, want, tries, reason)
	}
}

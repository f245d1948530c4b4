package store

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// patchColumns returns the arguments of EntityUpdate between the id and the revision.
func patchColumns(patch entity.Patch) ([]any, error) {
	set, gone, touched := map[string]json.RawMessage{}, []string{}, []string{}
	for name, v := range patch.Fields {
		if name == "" {
			return nil, jig.Errorf(jig.CodeInvalidInput, "a field of the change has no name").WithField("fields")
		}
		touched = append(touched, text(name))
		if len(v) == 0 || bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			gone = append(gone, text(name))
			continue
		}
		set[name] = v
	}
	for name := range patch.Provenance {
		touched = append(touched, text(name))
	}
	whole, err := json.Marshal(set)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the change cannot be written as JSON: %w", err).WithField("fields")
	}
	content, err := contentOf(whole)
	if err != nil {
		return nil, err
	}
	provenance, err := provenanceOf(patch.Provenance)
	if err != nil {
		return nil, err
	}
	title := patch.Title
	if title != nil {
		clean := text(*title)
		title = &clean
	}
	return []any{content, gone, touched, provenance, title, text(patch.TypeVersion), text(patch.Key)}, nil
}

// contentOf returns content as its column stores it. It refuses content that is not a JSON object, or has texts or numbers that PostgreSQL
// cannot store.
func contentOf(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("{}"), nil
	}
	if len(raw) > entity.MaxBytes {
		return nil, tooLarge()
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var content map[string]any
	if err := d.Decode(&content); err != nil || content == nil || d.More() {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the content is not a JSON object").WithField("content")
	}
	b, err := encode(content)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(b, []byte(`\u0000`)) && hasNUL(content) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the content has a text with a NUL character").WithField("content").WithHint("leave it out")
	}
	if field := extreme(content); field != "" {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a number in %q is out of range", field).WithField(field).WithHint("use an exponent of at most 400")
	}
	return b, nil
}

func tooLarge() *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, "the content has more than %d KiB", entity.MaxBytes>>10).WithField("content").
		WithHint("store long texts as texts of the entity, which can be searched, or as artifacts")
}

// hasNUL reports whether a text or a name in a value contains a NUL character.
func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for name, part := range v {
			if strings.Contains(name, "\x00") || hasNUL(part) {
				return true
			}
		}
	}
	return false
}

// extreme returns the name of a field whose value contains a number that PostgreSQL would refuse, or "" if all numbers fit.
func extreme(content map[string]any) string {
	var outside func(v any) bool
	outside = func(v any) bool {
		switch v := v.(type) {
		case json.Number:
			return !plainNumber(v.String())
		case []any:
			return slices.ContainsFunc(v, outside)
		case map[string]any:
			for _, part := range v {
				if outside(part) {
					return true
				}
			}
		}
		return false
	}
	for name, v := range content {
		if outside(v) {
			return name
		}
	}
	return ""
}

func provenanceOf(p map[string]entity.Provenance) ([]byte, error) {
	if len(p) == 0 {
		return []byte("{}"), nil
	}
	b, err := encode(p)
	if err == nil && bytes.Contains(b, []byte(`\u0000`)) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the provenance has a text with a NUL character").WithField("provenance")
	}
	return b, err
}

// contentMap decodes stored content and keeps numbers as they are written.
func contentMap(content json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "a stored value cannot be read: %w", err)
	}
	return m, nil
}

// maxDeleted bounds how often the entity of one key may be deleted and created again.
const maxDeleted = 1 << 20

// LatestByKey returns the latest entity that was created under a key, even if it was deleted since. found is false when there is no such
// entity.
func (db *DB) LatestByKey(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error) {
	e, deleted, err := db.latestByKey(ctx, tenant, key)
	return e, deleted >= 0, err
}

// CreateByKey stores an entity, or returns the one that was created under its key, even if another request is creating it at the same time.
// If the key is reusable, deleting the entity frees the key; otherwise the deleted entity is returned. Errors are those of CreateEntity.
// Reusable keys must not begin with a digit.
func (db *DB) CreateByKey(ctx context.Context, n entity.NewEntity, reusable bool) (e entity.Entity, created bool, err error) {
	key := n.Key
	for deleted := 0; deleted < maxDeleted; {
		n.Key = keyAfter(key, deleted)
		if e, created, err = db.createOrFind(ctx, n); created || err != nil || !reusable {
			return e, created, err
		}
		if there, err := db.Entities(ctx, n.Tenant, []string{e.ID}); len(there) > 0 || err != nil {
			return e, false, err
		}
		_, latest, err := db.latestByKey(ctx, n.Tenant, key)
		if err != nil {
			return e, false, err
		}
		deleted = max(latest, deleted+1)
	}
	return e, false, jig.Errorf(jig.CodeConflict, "%d entities of this key were deleted", maxDeleted).WithField("key").
		WithHint("use another key")
}

// createOrFind stores an entity. If a concurrent request has already used the key, it returns that request's entity.
func (db *DB) createOrFind(ctx context.Context, n entity.NewEntity) (entity.Entity, bool, error) {
	e, created, err := db.CreateEntity(ctx, n)
	if jig.CodeOf(err) != jig.CodeConflict {
		return e, created, err
	}
	other, found, lookup := db.entityByKey(ctx, n.Tenant, n.Key)
	if lookup != nil || !found || other.Type != n.Type {
		return e, false, err
	}
	return other, false, nil
}

// latestByKey returns the latest entity of a key, deleted or not, and the number of entities before it, all of which were deleted. deleted
// is -1 if the key has no entity.
func (db *DB) latestByKey(ctx context.Context, tenant, key string) (e entity.Entity, deleted int, err error) {
	deleted, err = largest(func(n int) (bool, error) {
		found, ok, err := db.entityByKey(ctx, tenant, keyAfter(key, n))
		if ok {
			e = found
		}
		return ok, err
	})
	return e, deleted, err
}

// keyAfter returns the key under which a reusable key's entity is stored after the given number of its entities were deleted. It cannot
// collide with another reusable key, because a reusable key never begins with a digit.
func keyAfter(key string, deleted int) string {
	if deleted == 0 {
		return key
	}
	return strconv.Itoa(deleted+1) + "~" + key
}

// largest returns the largest n for which there(n) is true, or -1 if there(0) is false. It assumes that there is true for every number up
// to that n, and calls it O(log n) times.
func largest(there func(n int) (bool, error)) (int, error) {
	low, high := -1, 0 // there(low) is true, there(high) is false once it was checked
	for high < maxDeleted {
		ok, err := there(high)
		if err != nil {
			return low, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high+1
	}
	for low+1 < high {
		middle := (low + high) / 2
		ok, err := there(middle)
		if err != nil {
			return low, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// entityByKey returns the entity that was stored under a key, even if it was deleted since. found is false when there is no such entity.
func (db *DB) entityByKey(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error) {
	row, err := ask(ctx, db, tenant, first[entityRow], "EntityByKey", tenant, text(key))
	if err != nil || row == nil {
		return entity.Entity{}, false, err
	}
	return row.read(ctx), true, nil
}

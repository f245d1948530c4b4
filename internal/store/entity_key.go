package store

import (
	"context"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

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
	var row *entityRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("EntityByKey", tenant, text(key)), &row) }); err != nil || row == nil {
		return entity.Entity{}, false, err
	}
	return row.read(ctx), true, nil
}

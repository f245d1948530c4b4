package pg

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is the system user that PostgreSQL runs as. PostgreSQL refuses to run as root.
type account struct {
	name     string
	uid, gid uint32
	// drop says that this process is root and must run PostgreSQL as the account.
	drop bool
}

// runAs returns the account: that of this process or, if it is root, `postgres` if it exists and `nobody` otherwise.
func runAs() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil //nolint:gosec // ids are 32 bits
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("user %s has the id %q: %w", name, found.Uid, err)
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("user %s has the group id %q: %w", name, found.Gid, err)
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid), drop: true}, nil
	}
	return account{}, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody: " +
		"start as another user, or set JIG_DATABASE_OWNER_URL to a server you have")
}

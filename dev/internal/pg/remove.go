package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Remove deletes the data of a server whose Options.Dir is dir, even if they are in another folder. It first stops a server that
// a killed process left behind. The caller must make sure that no running process uses dir.
func Remove(ctx context.Context, dir string) error {
	who, err := runAs()
	if err != nil {
		return err
	}
	at, err := locate(dir, who)
	if err != nil {
		return err
	}
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := clearStale(ctx, filepath.Join(at, "data")); err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil {
		return fmt.Errorf("remove the old data: %w", err)
	}
	return nil
}

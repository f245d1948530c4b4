// Package worker runs jig's worker, which does the work of all sessions on its task queue. A program that adds tools of its own calls
// [LoadSettings] and [Run]:
//
//	settings, err := worker.LoadSettings(os.Environ())
//	if err != nil {
//		return err
//	}
//	return worker.Run(ctx, settings, settings.Logger(os.Stderr), refundTool)
//
// All workers of a task queue must have the same tools. The database needs its schema first: see [Migrate], or run `jig migrate`.
//
// The package connects the other packages and contains no rules of its own: worker.go assembles them, tools.go the built-in tools, and
// background.go the work beside Temporal's worker, such as sending notices and closing sessions whose workflow was ended from outside.
package worker

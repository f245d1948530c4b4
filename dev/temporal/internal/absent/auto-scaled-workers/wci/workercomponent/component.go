// Package workercomponent replaces the workers that run worker controllers. This build has none.
package workercomponent

import "go.uber.org/fx"

// Module adds nothing to the server.
var Module = fx.Options()

// Package workercomponent stands in for the workers that run controllers: there are none.
package workercomponent

import "go.uber.org/fx"

// Module adds nothing to the server.
var Module = fx.Options()

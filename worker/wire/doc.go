// Package wire puts a worker together: store, tools, models, policy, activities and workflows, over the settings of the
// environment. Command worker runs it, and the development server in its own process; nobody else imports it.
package wire

// Package wire assembles a worker from its store, tools, models, policy, activities and workflows, using the settings in the environment.
// Only command worker and the development server import it; the development server runs the worker in its own process.
package wire

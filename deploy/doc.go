// Package deploy holds what a deployment needs besides the binaries: the setup of the databases and of the Temporal server for
// docker-compose.yml. It contains no code; its tests load the files.
package deploy

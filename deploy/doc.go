// Package deploy holds what a deployment needs beside the binaries: the set-up of databases and of the Temporal server for
// docker-compose.yml. It has no code; its tests load the files.
package deploy

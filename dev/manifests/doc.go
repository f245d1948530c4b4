// Package manifests checks the Kubernetes manifests in deploy with the types of the Kubernetes API. It is a module of its own, which imports
// nothing from jig, so that no other module depends on Kubernetes. It contains only tests.
package manifests

package activities

import "github.com/jig-run/jig"

// checkProof refuses a request that carries a proof: this worker knows no server whose statements it could check. A proof that nobody
// checked must not pass as one, and it must not be dropped silently either.
func checkProof(proof string) error {
	if proof == "" {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "this worker cannot check the proof of the request").WithField("proof").
		WithHint("leave `proof` out, or update the workers")
}

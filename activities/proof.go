package activities

import "github.com/jig-run/jig"

// checkProof refuses a request that carries a proof, because this worker knows no server whose proofs it could check. A proof that nobody
// has checked must be neither accepted nor dropped silently.
func checkProof(proof string) error {
	if proof == "" {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "this worker cannot check the proof of the request").WithField("proof").
		WithHint("leave `proof` out, or update the workers")
}

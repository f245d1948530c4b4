package httpapi

import (
	"context"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
)

// fromItsPage returns an error unless a request comes from a page of its embed token's origin. It is NOT_PERMITTED, reason cross_origin.
func (c caller) fromItsPage(r *http.Request) error {
	if origins := r.Header.Values("Origin"); len(origins) != 1 || origins[0] != c.embed.Origin {
		return jig.Errorf(jig.CodeNotPermitted, "the embed token is for pages of another origin").WithReason(reasonOrigin)
	}
	return nil
}

// embeds returns the kind of an embed token.
func embeds(t *credential.Credential) api.Embed {
	if t.Tool != "" {
		return api.EmbedTool
	}
	return api.EmbedSession
}

// reaches returns an error if the path of a request names another session or tool than those of its embed token. All others are answered in
// the same way, whether they exist or not. param returns a parameter of the path, or "".
func (c caller) reaches(param func(name string) string) error {
	if c.embed == nil {
		return nil
	}
	if session := param("session"); session != "" && !c.embed.Shows(jig.SessionID(c.tenant, session)) {
		return jig.Errorf(jig.CodeNotFound, "there is no such session").WithField("session")
	}
	if tool := param("tool"); tool != "" && tool != c.embed.Tool {
		return jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	return nil
}

type embedRequest struct {
	Body struct {
		Session string `json:"session,omitempty" names:"session" maxLength:"192" doc:"The session that the token shows"`
		Tool    string `json:"tool,omitempty" names:"tool" maxLength:"64" doc:"The tool that the token calls, instead of a session"`
		Origin  string `json:"origin" maxLength:"300" example:"https://shop.example.com" doc:"The origin of the page that uses the token"`
	} `nameHint:"CreateEmbedToken"`
}

// createdEmbed holds a new token with its text, which nobody can find again.
type createdEmbed struct {
	credential.Credential
	Text string `json:"embed_token" doc:"The token itself; it is not stored"`
}

type embedAnswer struct{ Body createdEmbed }

func (a *API) createEmbed(ctx context.Context, in *embedRequest) (*embedAnswer, error) {
	c := exchangeOf(ctx).caller
	t := credential.Credential{
		Tenant: c.tenant, Kind: identity.KindEmbed, Tool: in.Body.Tool, Origin: in.Body.Origin, Principal: c.principal.ID, Scopes: credential.EmbedScopes(in.Body.Tool),
		ExpiresAt: c.expires, CreatedBy: c.principal.ID, MadeWith: identity.CredentialRef{Kind: c.kind, ID: c.id},
	}
	if !c.allows(credential.ScopeRead) {
		return nil, c.lacks(credential.ScopeRead)
	}
	if in.Body.Session != "" {
		t.Session = jig.SessionID(c.tenant, in.Body.Session)
		if _, err := a.standing(ctx, c.tenant, t.Session); err != nil {
			return nil, err
		}
	}
	if err := t.CheckEmbed(); err != nil {
		return nil, err
	}
	if c.signed != nil {
		t.Issuer, t.Subject, t.Groups = c.signed.Issuer, c.signed.Subject, c.signed.Groups
	}
	text, id, hash := credential.EmbedForm.New()
	t.ID = id
	created, err := a.options.Credentials.CreateCredential(ctx, credential.New{Credential: t, Hash: hash})
	return &embedAnswer{Body: createdEmbed{created, text}}, err
}

type embedsAnswer struct {
	Body struct {
		Tokens []credential.Credential `json:"embed_tokens"`
		Next   string                  `json:"next_cursor,omitempty"`
	} `nameHint:"EmbedTokens"`
}

func (a *API) listEmbeds(ctx context.Context, in *api.Page) (*embedsAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, next, err := a.options.Credentials.EmbedTokens(ctx, tenant, in.Cursor, in.Limit)
	answer := &embedsAnswer{}
	answer.Body.Tokens, answer.Body.Next = append([]credential.Credential{}, list...), next
	return answer, err
}

type oneEmbed struct {
	Token string `path:"embed_token" names:"embed_token" maxLength:"100" doc:"The id of the token"`
}

func (a *API) revokeEmbed(ctx context.Context, in *oneEmbed) (*struct{}, error) {
	tenant, who := callerOf(ctx)
	return nil, a.options.Credentials.RevokeCredential(ctx, tenant, identity.CredentialRef{Kind: identity.KindEmbed, ID: in.Token}, who.ID)
}

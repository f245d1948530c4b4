package httpapi

import (
	"context"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/embed"
	"github.com/jig-run/jig/internal/identity/openid"
)

// embedded returns the caller of an embed token, without what the tenant's document adds. The error is NOT_FOUND if it does not count, and NOT_PERMITTED,
// reason cross_origin, if the request does not come from a page of the token's origin.
func (a *API) embedded(ctx context.Context, r *http.Request, id string, hash []byte) (caller, error) {
	t, err := a.options.Embeds.EmbedToken(ctx, id, hash)
	if err != nil {
		return caller{}, err
	}
	c := caller{
		kind: kindEmbed, id: t.ID, tenant: t.Tenant, principal: jig.Principal{ID: t.Principal, Claimed: true}, expires: &t.ExpiresAt, embed: &t, lineage: t.Lineage,
	}
	if len(t.Lineage) > 0 {
		c.principal.Maker = t.Lineage[0].Maker
	}
	if t.Maker.Issuer != "" {
		c.signed = &openid.Identity{Tenant: t.Tenant, Issuer: t.Maker.Issuer, Subject: t.Maker.Subject, Groups: t.Maker.Groups, ExpiresAt: t.ExpiresAt}
	}
	if origins := r.Header.Values("Origin"); len(origins) != 1 || origins[0] != t.Origin {
		return c, jig.Errorf(jig.CodeNotPermitted, "the embed token is for pages of another origin").WithReason(reasonOrigin)
	}
	return c, nil
}

// embeds returns the kind of an embed token.
func embeds(t *embed.Token) api.Embed {
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
	embed.Token
	Text string `json:"embed_token" doc:"The token itself; it is not stored"`
}

type embedAnswer struct{ Body createdEmbed }

func (a *API) createEmbed(ctx context.Context, in *embedRequest) (*embedAnswer, error) {
	c := exchangeOf(ctx).caller
	t := embed.Token{Tenant: c.tenant, Tool: in.Body.Tool, Origin: in.Body.Origin, Principal: c.principal.ID, Maker: embed.Maker{Kind: c.kind, ID: c.id}}
	if !c.allows(apikey.ScopeRead) {
		return nil, c.lacks(apikey.ScopeRead)
	}
	if in.Body.Session != "" {
		t.Session = jig.SessionID(c.tenant, in.Body.Session)
		if _, err := a.standing(ctx, c.tenant, t.Session); err != nil {
			return nil, err
		}
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	if c.signed != nil {
		t.Maker.Issuer, t.Maker.Subject, t.Maker.Groups = c.signed.Issuer, c.signed.Subject, c.signed.Groups
	}
	text, id, hash := embed.New()
	t.ID = id
	created, err := a.options.Embeds.CreateEmbedToken(ctx, t, hash, c.expires)
	return &embedAnswer{Body: createdEmbed{created, text}}, err
}

type embedsAnswer struct {
	Body struct {
		Tokens []embed.Token `json:"embed_tokens"`
		Next   string        `json:"next_cursor,omitempty"`
	} `nameHint:"EmbedTokens"`
}

func (a *API) listEmbeds(ctx context.Context, in *api.Page) (*embedsAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, next, err := a.options.Embeds.EmbedTokens(ctx, tenant, in.Cursor, in.Limit)
	answer := &embedsAnswer{}
	answer.Body.Tokens, answer.Body.Next = append([]embed.Token{}, list...), next
	return answer, err
}

type oneEmbed struct {
	Token string `path:"embed_token" names:"embed_token" maxLength:"100" doc:"The id of the token"`
}

func (a *API) revokeEmbed(ctx context.Context, in *oneEmbed) (*struct{}, error) {
	tenant, who := callerOf(ctx)
	return nil, a.options.Embeds.RevokeEmbedToken(ctx, tenant, in.Token, who.ID)
}

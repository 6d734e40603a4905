// Package github implements GitHubIdentityProvider: users of GitHub or a GitHub Enterprise host,
// optionally limited to members of certain organizations or teams.
package github

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/external"
)

// Settings describes the OAuth application registered with GitHub.
type Settings struct {
	ClientID, ClientSecret string
	// Organizations and Teams (`organization/team`) limit logins to their members. If both are
	// empty, every user is accepted.
	Organizations, Teams []string
	// Host is a GitHub Enterprise host. It defaults to github.com.
	Host string
	// Client sends requests to GitHub.
	Client *http.Client
}

// New returns the provider.
func New(s Settings) *external.Provider {
	site, api := "https://github.com", "https://api.github.com"
	if s.Host != "" && s.Host != "github.com" {
		site, api = "https://"+s.Host, "https://"+s.Host+"/api/v3"
	}
	scopes := []string{"user:email"}
	if len(s.Organizations)+len(s.Teams) > 0 {
		scopes = append(scopes, "read:org")
	}
	return &external.Provider{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret,
		AuthorizeURL: site + "/login/oauth/authorize", TokenURL: site + "/login/oauth/access_token", Scopes: scopes, Client: s.Client,
		Identify: func(ctx context.Context, with *external.API, _ *oauth2.Token) (*idp.Identity, error) {
			return s.identify(ctx, with, api)
		},
	}
}

func (s Settings) identify(ctx context.Context, with *external.API,
	api string) (*idp.Identity, error) {
	var user struct {
		ID                 int64
		Login, Name, Email string
	}
	if _, err := with.Get(ctx, api+"/user", &user); err != nil || user.ID == 0 {
		return &idp.Identity{}, err
	}
	if err := s.checkMember(ctx, with, api); err != nil {
		return nil, err
	}
	return &idp.Identity{UserName: strconv.FormatInt(user.ID, 10), PreferredUserName: user.Login, Name: user.Name, Email: user.Email}, nil
}

// checkMember rejects users who are not members of a configured organization or team. GitHub
// compares names case-insensitively.
func (s Settings) checkMember(ctx context.Context, with *external.API, api string) error {
	if len(s.Organizations)+len(s.Teams) == 0 {
		return nil
	}
	type organization struct{ Login string }
	type team struct {
		Slug         string
		Organization organization
	}
	organizations, err := list[organization](ctx, with, api+"/user/orgs?per_page=100")
	if err != nil {
		return err
	}
	for _, organization := range organizations {
		if containsFold(s.Organizations, organization.Login) {
			return nil
		}
	}
	if len(s.Teams) > 0 {
		teams, err := list[team](ctx, with, api+"/user/teams?per_page=100")
		if err != nil {
			return err
		}
		for _, team := range teams {
			if containsFold(s.Teams, team.Organization.Login+"/"+team.Slug) {
				return nil
			}
		}
	}
	return fmt.Errorf("the user is in none of the organizations and teams that may log in: %w", idp.ErrRefused)
}

func containsFold(list []string, value string) bool {
	return slices.ContainsFunc(list, func(name string) bool { return strings.EqualFold(name, value) })
}

// maxPages is the maximum number of pages of a list that are requested.
const maxPages = 20

// nextPage matches the link to the next page in a Link header.
var nextPage = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// list requests all pages of a list and returns their elements.
func list[T any](ctx context.Context, with *external.API, address string) (all []T, err error) {
	for page := 0; address != "" && page < maxPages; page++ {
		var some []T
		header, err := with.Get(ctx, address, &some)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		next := nextPage.FindStringSubmatch(header.Get("Link"))
		if next == nil || !sameHost(next[1], address) {
			break
		}
		address = next[1]
	}
	return all, nil
}

// sameHost reports whether a uses TLS and has the same host as b. It prevents list from sending the
// token to another host.
func sameHost(a, b string) bool {
	hostOf := func(address string) string {
		host, _, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
		return host
	}
	return strings.HasPrefix(a, "https://") && hostOf(a) == hostOf(b)
}

//go:build browser

package console

import (
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// The flows are not part of `make test`, but of `make flows`. A pod that starts changes the network
// of the node, where the browser runs, and the browser then aborts its requests. The console does
// not repeat all of them: see docs/known-gaps.md.

func TestAPersonCreatesAProjectAndSeesItLive(t *testing.T) {
	siteOf(t, kit.Shared(t)).play("project.mjs", "first")
}

func TestANewUserCreatesApplicationsFromTheCatalog(t *testing.T) {
	siteOf(t, kit.Shared(t)).play("catalog.mjs", "from-the-catalog")
}

func TestAPersonWorksWithTheObjectsOfAProject(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.play("resources.mjs", s.Namespace)
}

func TestAnEndedSessionKeepsWhatWasTyped(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.play("session.mjs", s.Namespace)
}

func TestPagesAreAccessible(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.play("accessible.mjs", s.Namespace)
}

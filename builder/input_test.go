package builder

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/object"
)

func TestWhatIsNotedOfACommitIsBounded(t *testing.T) {
	short := revisionOf(&object.Commit{Message: "\nFix the door\n\nIt was open.\n", Author: object.Signature{Name: "Ann", Email: "ann@example.com"}}).Git
	if short.Message != "Fix the door" || short.Author.Name != "Ann" || short.Author.Email != "ann@example.com" {
		t.Errorf("noted %+v", short)
	}
	long := strings.Repeat("ä", 100_000)
	noted := revisionOf(&object.Commit{Message: long, Author: object.Signature{Name: long, Email: long}, Committer: object.Signature{Name: long, Email: long}}).Git
	for _, text := range []string{noted.Message, noted.Author.Name, noted.Author.Email, noted.Committer.Name, noted.Committer.Email} {
		if text != strings.Repeat("ä", longest-3)+"..." {
			t.Errorf("noted %d characters of %d", len([]rune(text)), len([]rune(long)))
		}
	}
}

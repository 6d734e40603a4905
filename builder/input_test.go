package builder

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/object"
)

func TestRevisionTextIsTruncated(t *testing.T) {
	short := revisionOf(&object.Commit{Message: "\nFix the door\n\nIt was open.\n", Author: object.Signature{Name: "Ann", Email: "ann@example.com"}}).Git
	if short.Message != "Fix the door" || short.Author.Name != "Ann" || short.Author.Email != "ann@example.com" {
		t.Errorf("got %+v", short)
	}
	long := strings.Repeat("ä", 100_000)
	revision := revisionOf(&object.Commit{Message: long, Author: object.Signature{Name: long, Email: long}, Committer: object.Signature{Name: long, Email: long}}).Git
	for _, text := range []string{revision.Message, revision.Author.Name, revision.Author.Email, revision.Committer.Name, revision.Committer.Email} {
		if text != strings.Repeat("ä", maxRevisionText-3)+"..." {
			t.Errorf("kept %d characters of %d", len([]rune(text)), len([]rune(long)))
		}
	}
}

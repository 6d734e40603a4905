package router

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

// browse opens a page in Chromium on the machine and returns what it shows when its scripts have run. Every name leads to the machine.
func browse(ctx context.Context, t *testing.T, c *kit.Cluster, url string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
		"--no-first-run", "--disable-extensions", "--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP * 127.0.0.1", "--dump-dom", url)
	var page, said bytes.Buffer
	command.Stdout, command.Stderr = &page, &said
	if err := c.Do(command.Start); err != nil {
		return "", err
	}
	if err := command.Wait(); err != nil {
		return "", fmt.Errorf("chromium ends with %w: %s", err, said.String())
	}
	return page.String(), nil
}

func TestABrowserOpensAnApplication(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "page", "<body><script>document.body.append(`scripts run at `+location.href)</script>"))
	c.OC("create", "route", "edge", "page", "--service=page", "--hostname=page.example.com", "--insecure-policy=Redirect")
	eventually.True(t, "the application is served", func() bool {
		_, body := fetch(c, 443, "page.example.com")
		return strings.Contains(body, "location.href")
	})
	c.WaitFor("page in the browser", func(ctx context.Context) error {
		page, err := browse(ctx, t, c, "http://page.example.com/")
		if err == nil && !strings.Contains(page, "scripts run at https://page.example.com/") {
			err = fmt.Errorf("it shows\n%s", page)
		}
		return err
	})
}

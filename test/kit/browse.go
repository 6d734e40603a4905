package kit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Browse opens a page in Chromium on the machine and returns what it shows when its scripts have
// run, as HTML. Every name leads to the machine, and an address that begins with http is not tried
// with https first.
func (c *Cluster) Browse(ctx context.Context, url string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
		"--no-first-run", "--disable-extensions", "--disable-features=HttpsUpgrades", "--user-data-dir="+c.t.TempDir(), "--host-resolver-rules=MAP * 127.0.0.1", "--dump-dom", url)
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

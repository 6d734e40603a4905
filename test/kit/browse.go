package kit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Browse opens a page in Chromium on the machine and returns the page's HTML after its scripts have
// run. In Chromium, every host name resolves to the machine, and http addresses are not upgraded to
// https.
func (c *Cluster) Browse(ctx context.Context, url string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
		"--no-first-run", "--disable-extensions", "--disable-features=HttpsUpgrades", "--user-data-dir="+c.t.TempDir(), "--host-resolver-rules=MAP * 127.0.0.1", "--dump-dom", url)
	var page, stderr bytes.Buffer
	command.Stdout, command.Stderr = &page, &stderr
	if err := c.Do(command.Start); err != nil {
		return "", err
	}
	if err := command.Wait(); err != nil {
		return "", fmt.Errorf("run chromium: %w: %s", err, stderr.String())
	}
	return page.String(), nil
}

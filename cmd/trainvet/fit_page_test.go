package main

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const fitPlan = `trainvet_plan: 1
model: llama-3-8b
seq_length: 8192
micro_batch_size: 8
data_parallel: 8
sharding: zero3
precision: deepspeed_mixed
loss_kernel: fp32_copy
stack: hf
device: A100-80GB
`

// fitOutput is what fit prints about that plan.
func fitOutput(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte(fitPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Main(append(append([]string{"fit"}, args...), file), strings.NewReader(""), &out, &errs); code != 1 {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	return out.String()
}

// TestFitPageStandsAlone: the page names no other file and no address, and says no text of the user as markup.
func TestFitPageStandsAlone(t *testing.T) {
	page := fitOutput(t, "--format", "html")
	for _, bad := range []string{"http://", "https://", "src=", "<script", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	var b bytes.Buffer
	if err := writeFitPage(&b, []fitAnswer{{Path: "<img onerror=x>", Verdict: "unknown", Missing: []string{"model"}}}); err != nil || strings.Contains(b.String(), "<img") {
		t.Error(err, b.String())
	}
}

// measured is what the browser says of the page in a frame of one width.
type measured struct {
	Width, Scroll    int
	Tracks, Segments int
	Rows             int
	Back, Ink        string
	Limit            float64
	Verdict          string
}

// probe frames the page at the width of a phone and of a screen, and writes down what is seen. The load of a page is over when that of its
// frames is, so this is written before a browser that waits for the load shows what it has.
const probe = `<!doctype html><body>
<iframe src="/fit.html" width="360" height="900" style="border:0"></iframe>
<iframe src="/fit.html" width="1200" height="900" style="border:0"></iframe>
<script>
function seen(frame) {
	const d = frame.contentDocument, style = frame.contentWindow.getComputedStyle(d.body), tracks = [...d.querySelectorAll(".track")];
	return {width: frame.clientWidth, scroll: d.documentElement.scrollWidth, tracks: tracks.length, segments: d.querySelectorAll(".track span").length, rows: d.querySelectorAll("tbody tr").length,
		back: style.backgroundColor, ink: style.color, verdict: d.querySelector(".verdict").textContent,
		limit: d.querySelector(".limit").getBoundingClientRect().left - tracks[0].getBoundingClientRect().left};
}
addEventListener("load", () => { const all = [...document.querySelectorAll("iframe")].map(seen); const pre = document.createElement("pre"); pre.id = "seen"; pre.textContent = JSON.stringify(all); document.body.replaceChildren(pre); });
</script>`

var seenText = regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`)

func browser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// TestFitPageInBrowser opens the page in a real browser: it is readable at the width of a phone without scrolling sideways, follows the
// light and the dark scheme, draws every phase against the limit, and asks for nothing else.
func TestFitPageInBrowser(t *testing.T) {
	program := browser()
	if program == "" {
		t.Skip("NO BROWSER: chromium or chrome is not installed, so the page of fit is not looked at")
	}
	page := fitOutput(t, "--format", "html", "--tokens", "1T")
	var lock sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		asked = append(asked, r.URL.Path)
		lock.Unlock()
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			w.Write([]byte(probe))
		case "/fit.html":
			w.Write([]byte(page))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	schemes := map[string][]measured{}
	for scheme, value := range map[string]string{"light": "1", "dark": "0"} {
		command := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
			"--blink-settings=preferredColorScheme="+value, "--dump-dom", server.URL+"/")
		dom, err := command.Output()
		match := seenText.FindSubmatch(dom)
		if err != nil || match == nil {
			t.Fatalf("%s: %v\n%s", scheme, err, dom)
		}
		var views []measured
		if err := json.Unmarshal([]byte(html.UnescapeString(string(match[1]))), &views); err != nil {
			t.Fatal(err)
		}
		schemes[scheme] = views
		if len(views) != 2 || views[0].Width != 360 || views[1].Width != 1200 {
			t.Errorf("%s: seen %+v", scheme, views)
		}
		for _, v := range views {
			t.Logf("%s: %+v", scheme, v)
			if v.Scroll > v.Width {
				t.Errorf("%s: the page is %d wide in a window of %d", scheme, v.Scroll, v.Width)
			}
			if v.Tracks != 5 || v.Segments < 10 || v.Rows < 4 || v.Verdict != "overflows" || v.Limit <= 0 || v.Back == v.Ink {
				t.Errorf("%s: %+v", scheme, v)
			}
		}
	}
	if schemes["light"][0].Back == schemes["dark"][0].Back {
		t.Errorf("the dark page is as light as the other: %s", schemes["dark"][0].Back)
	}
	slices.Sort(asked)
	if extra := slices.DeleteFunc(slices.Compact(asked), func(path string) bool { return path == "/" || path == "/fit.html" || path == "/favicon.ico" }); len(extra) > 0 {
		t.Errorf("the page asks for %v", extra)
	}
}

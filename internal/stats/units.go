package stats

import (
	"fmt"
	"strconv"
	"time"
)

// FormatDuration is a duration for people: two significant digits where it is short.
func FormatDuration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Round(100*time.Microsecond))/float64(time.Millisecond), 'f', -1, 64) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// FormatBytes is a number of bytes for people.
func FormatBytes(bytes int64) string {
	units := []string{"bytes", "KB", "MB", "GB", "TB"}
	f, i := float64(bytes), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	if i > 0 && f < 10 {
		return fmt.Sprintf("%.1f %s", f, units[i])
	}
	return fmt.Sprintf("%.0f %s", f, units[i])
}

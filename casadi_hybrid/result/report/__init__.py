"""One self-contained HTML page of a solve: no network, no script, figures as inline SVG."""

"""The tab in the sidebar. Panels draw and never compute."""
